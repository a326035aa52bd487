// Members of groups with franz-go, each in a process of its own, until SIGTERM. They tell what happens to them as the
// programs of other clients do: a line of JSON an event, with the time it happened.
//
//	members consumer|share OPTIONS
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Options are what the parent wants, as JSON.
type Options struct {
	Bootstrap, Group, Topic string
}

func main() {
	var options Options
	if err := json.Unmarshal([]byte(os.Args[2]), &options); err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var err error
	switch os.Args[1] {
	case "consumer":
		err = consume(ctx, options)
	case "share":
		err = share(ctx, options)
	default:
		err = fmt.Errorf("no such member: %s", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
	say("closed", nil)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

var saying sync.Mutex

func say(event string, facts map[string]any) {
	line := map[string]any{"event": event, "at": monotonic()}
	for name, fact := range facts {
		line[name] = fact
	}
	text, err := json.Marshal(line)
	if err != nil {
		fail(err)
	}
	saying.Lock()
	defer saying.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

// monotonic is the clock of all programs, in ns.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		fail(err)
	}
	return now.Nano()
}
