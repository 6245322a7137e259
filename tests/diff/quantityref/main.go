// quantityref answers, line by line, what the Go libraries of Kubernetes make of a text: the
// reference that the codecs are compared with. It is a test tool and not part of the product.
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

func canonical(q resource.Quantity) string {
	number, suffix := q.CanonicalizeBytes(nil)
	return string(number) + string(suffix)
}

// A canonical form is lossy when Go itself reads another value back from it. That happens from
// 1000E on, where it has no suffix left and drops the factor.
func lossy(q resource.Quantity) bool {
	again, err := resource.ParseQuantity(canonical(q))
	return err != nil || again.Cmp(q) != 0
}

// fits tells whether q * 10^scale, which is not negative, rounded up is an int64; Go's own
// accessors wrap around silently.
func fits(q resource.Quantity, scale inf.Scale) bool {
	copied := q.DeepCopy()
	dec := copied.AsDec()
	if dec.Scale() < -64 {
		return dec.Sign() == 0
	}
	shifted := new(inf.Dec).Set(dec)
	shifted.SetScale(dec.Scale() - scale)
	return shifted.Cmp(inf.NewDec(math.MaxInt64, 0)) <= 0
}

// value is what Value or MilliValue say. Go rounds negative fractions now up and now down, so the
// tests compute those themselves.
func value(q resource.Quantity, scale inf.Scale, get func(*resource.Quantity) int64) string {
	if q.Sign() < 0 {
		return "negative"
	}
	if !fits(q, scale) {
		return "too big"
	}
	return fmt.Sprint(get(&q))
}

func text(q resource.Quantity) string {
	if lossy(q) {
		return "lossy"
	}
	return canonical(q)
}

func quantity(line string) string {
	q, err := resource.ParseQuantity(line)
	if err != nil {
		return "error"
	}
	return fmt.Sprintf("ok\t%s\t%s\t%s", text(q),
		value(q, 0, (*resource.Quantity).Value), value(q, 3, (*resource.Quantity).MilliValue))
}

// pair compares two quantities.
func pair(line string) string {
	fields := strings.Split(line, "\t")
	a, b := resource.MustParse(fields[0]), resource.MustParse(fields[1])
	return fmt.Sprint(a.Cmp(b))
}

func duration(line string) string {
	d, err := time.ParseDuration(line)
	if err != nil {
		return "error"
	}
	return fmt.Sprintf("ok\t%d", int64(d))
}

// timestamp gives microseconds and both Kubernetes formats.
func timestamp(line string) string {
	t, err := time.Parse(time.RFC3339, line)
	if err != nil || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
		return "error"
	}
	return fmt.Sprintf("ok\t%d\t%s\t%s", t.UnixMicro(), t.UTC().Format(time.RFC3339),
		t.UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
}

func main() {
	answers := map[string]func(string) string{
		"quantity": quantity, "pair": pair, "duration": duration, "timestamp": timestamp,
	}
	if len(os.Args) != 2 || answers[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: quantityref quantity|pair|duration|timestamp <lines")
		os.Exit(2)
	}
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		fmt.Fprintln(out, answers[os.Args[1]](strings.TrimSuffix(line, "\n")))
	}
}
