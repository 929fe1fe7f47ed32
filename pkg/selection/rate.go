package selection

// unknownCores stands in where an upstream's cores are not known.
const unknownCores = 8

// coresOf is a view's cores, or a stand-in when they are not known.
func coresOf(v *View) float64 {
	if v.Cores > 0 {
		return v.Cores
	}
	return unknownCores
}

// rateOf is the jobs that v completes in a second when it is full; its cores
// times coreRate where it is not known.
func rateOf(v *View, coreRate float64) float64 {
	if v.Rate > 0 {
		return v.Rate
	}
	return coreRate * coresOf(v)
}

// meanCoreRate is the jobs that a core completes in a second, averaged over
// the views whose rates are known; standard when none is.
func meanCoreRate(views []View, standard float64) float64 {
	var rate, cores float64
	for i := range views {
		if views[i].Rate > 0 {
			rate += views[i].Rate
			cores += coresOf(&views[i])
		}
	}
	if cores == 0 {
		return standard
	}
	return rate / cores
}

// factorOf is how v's fetches compare with the pool's; 1 where not known.
func factorOf(v *View) float64 {
	if v.FetchFactor > 0 {
		return v.FetchFactor
	}
	return 1
}
