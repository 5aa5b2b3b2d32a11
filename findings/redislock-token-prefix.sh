#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bsm/redislock v0.9.4 (Go): an Obtain with the token "worker-1" takes the lock from its holder
# "worker-10", at once and without an error.
#
# Expected: Options.Token is an identity. A second Obtain with the same token may renew the holder's
#   lock; an Obtain with another token gets ErrNotObtained while the lease runs.
# Instead: token and metadata are stored as one string without a separator or a length, and
#   a second Obtain compares only as many bytes as its own token has with the beginning of that
#   string. So each token that is a prefix of the holder's counts as the holder's. It works in
#   one direction only: "worker-10" is refused while "worker-1" holds. Tests with a handful of workers
#   therefore do not show it. The robbed holder hears nothing until it refreshes or releases.
# Why it matters: people use names of hosts, pods and workers with a number at their end as tokens
#   when they want a lock to survive a restart. Then two of them are in the section.
# Read in: redislock.go of that version, the Lua text behind Obtain, and how Obtain makes its
#   value; the comment of Options.Token asks only that tokens be unique, as these are.
set -eu
. "$(dirname "$0")/common.sh"
mkdir "$work/go"
cat >"$work/go/main.go" <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

func main() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: os.Args[1]})
	locker := redislock.New(client)
	obtain := func(key, token string) (*redislock.Lock, error) {
		return locker.Obtain(ctx, key, time.Minute, &redislock.Options{Token: token})
	}

	// the direction in which it holds
	if _, err := obtain("a", "worker-1"); err != nil {
		panic(err)
	}
	_, refused := obtain("a", "worker-10")
	fmt.Println("held by worker-1, worker-10 asks: ", refused)

	// the other
	ten, err := obtain("b", "worker-10")
	if err != nil {
		panic(err)
	}
	one, robbed := obtain("b", "worker-1")
	fmt.Println("held by worker-10, worker-1 asks: ", robbed, "(nil: it has the lock)")
	if robbed != nil {
		return
	}
	late := ten.Release(ctx)
	fmt.Println("worker-10, 60 s lease, releases:  ", late)
	fmt.Println("worker-1 releases:                ", one.Release(ctx))
	if errors.Is(refused, redislock.ErrNotObtained) && errors.Is(late, redislock.ErrLockNotHeld) {
		fmt.Println("still so")
	}
}
GO
go_get github.com/redis/go-redis/v9@v9.23.0 github.com/bsm/redislock@v0.9.4
start_server
say 'expected: both ask in vain'
"$work/finding" "127.0.0.1:$port" >"$work/seen"
verdict "$work/seen"
