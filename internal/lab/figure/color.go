package figure

import (
	"fmt"
	"image/color"
	"math"
)

var (
	ink   = color.RGBA{0x33, 0x3a, 0x42, 0xff}
	faint = color.RGBA{0xe2, 0xe6, 0xea, 0xff}
	away  = color.RGBA{0x9a, 0xa3, 0xad, 0xff}
	calm  = color.RGBA{0xd8, 0xee, 0xdd, 0xff}
)

// Heat is the colours of a strip from 0 to 1, as CSS writes them.
func Heat() []string {
	var all []string
	for i := range shades + 1 {
		all = append(all, css(heat(float64(i)/shades)))
	}
	return all
}

// HeatKeys say what the colours of a strip stand for.
func HeatKeys() []Key {
	return []Key{{"none", css(heat(0))}, {"a third", css(heat(1.0 / 3))}, {"two thirds", css(heat(2.0 / 3))}, {"all", css(heat(1))}, {"away", Away()}}
}

// Away is the colour of an upstream that is away.
func Away() string { return css(away) }

func css(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// Color is the colour of a series by its number, as CSS writes it. Colour-blind
// people can tell the first eight apart too (Okabe and Ito).
func Color(number int) string {
	return css(series(number))
}

func series(number int) color.RGBA {
	first := [...]color.RGBA{
		{0x00, 0x72, 0xb2, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
		{0x56, 0xb4, 0xe9, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x8a, 0x8a, 0x8a, 0xff}, {0xc9, 0xb8, 0x1f, 0xff},
	}
	if number < len(first) {
		return first[number]
	}
	// Steps of the golden angle around the colour circle never give a hue twice.
	hue := math.Mod(float64(number)*137.508, 360) / 60
	channel := func(shift float64) uint8 {
		at := math.Mod(hue+shift, 6)
		return uint8(60 + 150*min(1, max(0, math.Abs(at-3)-1)))
	}
	return color.RGBA{channel(0), channel(4), channel(2), 0xff}
}

// heat is the colour of a share: calm at 0, orange between, red at 1.
func heat(share float64) color.RGBA {
	stops := [...]color.RGBA{calm, {0xfb, 0xc8, 0x4b, 0xff}, {0xe8, 0x6a, 0x2c, 0xff}, {0xb0, 0x1e, 0x28, 0xff}}
	at := min(max(share, 0), 1) * float64(len(stops)-1)
	i := min(int(at), len(stops)-2)
	mix := func(a, b uint8) uint8 { return uint8(float64(a) + (at-float64(i))*(float64(b)-float64(a))) }
	a, b := stops[i], stops[i+1]
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xff}
}
