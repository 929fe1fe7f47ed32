// Package rules is the rule processing itself: it reads a job as in the
// thesis's listing 1, compiles its operators against a feed's columns, and
// applies them. It is pure: the same feed and operators give the same feed.
//
// A feed is text. A field that an item lacks and a field that is empty are the
// same thing, and numbers appear only where a filter compares.
package rules
