// kfake, franz-go's broker for tests, as a server of its own: one node that keeps its data over kill -9.
//
//	kfake PORT DIRECTORY
//
// A line on standard output says that it is ready; SIGTERM ends it.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.Ports(port),
		kfake.DataDir(os.Args[2]),
		kfake.SyncWrites(),
		kfake.GroupMinSessionTimeout(time.Second),
		kfake.WithLogger(kfake.BasicLogger(os.Stderr, kfake.LogLevelWarn)),
	)
	if err != nil {
		panic(err)
	}
	fmt.Println("ready on", cluster.ListenAddrs()[0])
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	<-signals
	cluster.Close()
}
