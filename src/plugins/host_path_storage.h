// What hostPath does to storage: directories that it makes for claims, and deletes. Private to
// hostPath. Source: kubernetes pkg/volume/hostpath/host_path.go@v1.36.2 (hostPathProvisioner,
// hostPathDeleter), but confined to configured directories.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/provisionable_volume_plugin.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Without empty and "." elements, so that it can be the root of a SafePath. ".." stays;
// CheckHostPath refuses it.
std::string CleanHostPath(const std::string& path);

// InvalidArgument, not applied, for a path that is relative or climbs.
Status CheckHostPath(const std::string& path);

// The same for "/", for `agent_root`, and for what contains it or lies in it.
Status CheckMayBeEmptied(const std::string& path, const std::string& agent_root);

// Deletes the directory with what is in it; one that is not there is success. `host` outlives the
// deleter. Errors, not applied: those of CheckHostPath and CheckMayBeEmptied; PermissionDenied for
// a path outside of the roots.
Result<std::unique_ptr<Deleter>> NewHostPathDeleter(VolumeHost& host,
                                                    std::vector<std::string> roots,
                                                    std::string path);

// Makes <first root>/<name of the volume> (0750), so that a call that is repeated makes the same; a
// directory that holds something is not the volume's, and is neither taken nor removed. `host`
// outlives the provisioner. REQUIRES: a root.
// Errors: InvalidArgument, not applied, for a class with parameters (there are none). Of Plan and
// Provision: InvalidArgument for what hostPath cannot give (a block device, a data source, a
// selector); AlreadyExists for a directory of somebody else; those of the effects. Of Undo:
// PermissionDenied outside of the roots.
Result<std::unique_ptr<Provisioner>> NewHostPathProvisioner(VolumeHost& host,
                                                            std::vector<std::string> roots,
                                                            VolumeOptions options);

}  // namespace volumed
