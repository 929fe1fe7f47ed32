package admin

// UPlot is the script and the style of the library that draws the page's charts, for other pages.
func UPlot() (script, style []byte) {
	read := func(name string) []byte {
		text, err := content.ReadFile("page/uplot/" + name)
		if err != nil {
			panic("BUG: admin: " + err.Error()) // it is embedded
		}
		return text
	}
	return read("uPlot.iife.min.js"), read("uPlot.min.css")
}
