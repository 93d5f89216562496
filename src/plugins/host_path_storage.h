// The directories that hostPath makes for claims, and deletes. Private to hostPath. Source:
// kubernetes pkg/volume/hostpath/host_path.go@v1.36.2 (hostPathProvisioner, hostPathDeleter), but
// confined to configured directories.
//
// Threads: any. The first three functions are pure; the objects block until their call's deadline.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/provisionable_volume_plugin.h"
#include "volumehost/volume_host.h"

namespace volumed {

// The path without empty and "." elements, so that it can be the root of a SafePath. ".." stays;
// CheckHostPath refuses it.
std::string CleanHostPath(const std::string& path);

// Errors: InvalidArgument, not applied, if the path is relative or has a ".." element.
Status CheckHostPath(const std::string& path);

// The same, and also for "/", for `agent_root`, and for a path that contains it or lies in it.
Status CheckMayBeEmptied(const std::string& path, const std::string& agent_root);

// Makes a deleter for the directory with its content; if the directory is missing, deleting
// succeeds. `host` outlives the deleter. Errors, not applied: those of CheckHostPath and
// CheckMayBeEmptied; PermissionDenied if the path is outside the roots. With CallOptions::approved
// only that directory is deleted; FailedPrecondition, not applied, if it was none when it was
// looked at.
Result<std::unique_ptr<Deleter>> NewHostPathDeleter(VolumeHost& host,
                                                    std::vector<std::string> roots,
                                                    std::string path);

// Makes a provisioner of <first root>/<name of the volume> (0750), so that a repeated call makes
// the same directory. A directory that has content is not the volume's, and is neither used nor
// removed. `host` outlives the provisioner. REQUIRES: there is a root.
// Errors: InvalidArgument, not applied, if the class has parameters (there are none). Of Plan and
// Provision: InvalidArgument for what hostPath cannot give (a block device, a data source, a
// selector); AlreadyExists if the directory belongs to something else; those of the effects. Of
// Undo: PermissionDenied outside the roots.
Result<std::unique_ptr<Provisioner>> NewHostPathProvisioner(VolumeHost& host,
                                                            std::vector<std::string> roots,
                                                            VolumeOptions options);

}  // namespace volumed
