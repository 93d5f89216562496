package main

import (
	"context"

	"google.golang.org/grpc"
)

// A bare address is the dialer's alone in this generation.
const bareTarget = ""

// dial waits for the connection, as the sidecars of that time do.
func dial(target string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return grpc.DialContext(ctx, target, append(options, grpc.WithBlock())...)
}
