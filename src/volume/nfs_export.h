// What identifies an NFS volume on a node: the export as mount(8) has it, and its server.
// Source: kubernetes pkg/volume/nfs/nfs.go@v1.36.2 (getServerFromSource, SetUpAt).
//
// Threads: any. Blocks: never.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/objects.h"

namespace volumed {

// "server:/path"; an IPv6 address is put in brackets, with its zone if it has one. (Kubelet's has
// no brackets for an address with a zone, which mount.nfs takes for a host's name.) The path is
// written as it is.
std::string NfsExport(const NfsVolumeSource& source);

// The inverse, for a source as the mount table has it; `read_only` is not in it. Nullopt for what
// has no ":/" with a server before it.
std::optional<NfsVolumeSource> ParseNfsExport(std::string_view text);

// "nfs:nas-1", in lower case: what all volumes of a server hang with. Two names of one server are
// two domains. Empty without a server.
std::string NfsFaultDomain(const NfsVolumeSource& source);

// "NFS server nas-1", for people. Empty without a server.
std::string NfsServerName(const NfsVolumeSource& source);

// nfs and nfs4: a mount of either may be of the other's type.
bool IsNfsType(std::string_view fs_type);

}  // namespace volumed
