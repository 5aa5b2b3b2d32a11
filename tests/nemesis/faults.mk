# SPDX-License-Identifier: Apache-2.0
# The nemesis: the schedule of its faults, and the code that causes them.
NEMESIS_SCHEDULE = tests/nemesis/schedule.h tests/nemesis/schedule.c
NEMESIS_FAULTS = \
	tests/nemesis/faults.h tests/nemesis/faults_impl.h tests/nemesis/faults.c \
	tests/nemesis/faults_start.c \
	tests/nemesis/faults_process.c tests/nemesis/faults_link.c tests/nemesis/faults_net.c \
	tests/nemesis/faults_server.c tests/nemesis/faults_data.c \
	tests/nemesis/faults_stranger.c \
	tests/nemesis/faults_topology.c tests/nemesis/faults_failover.c \
	tests/nemesis/faults_nodes.c tests/nemesis/faults_cluster.c \
	tests/nemesis/faults_reshard.c \
	tests/nemesis/marks.c
