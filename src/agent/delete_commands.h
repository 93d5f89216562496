// DeleteCommands: carries out commands to delete objects. Commands that are given together, or that
// come while others are being carried out, share the syncs that each of them waits for.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent.pb.h"
#include "base/ids.h"
#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

struct ControlBackend;

// Threads: the control thread. Blocks: never.
class DeleteCommands {
 public:
  // Called exactly once, on any thread: OK once the command is durable (the object may wait for its
  // users until it goes), or the error that says why the object stays. If the object may come back
  // all the same, since its file cannot be removed or the records are in recovery, that is OK too,
  // and the response has a warning.
  // A PersistentVolume in the phase Undoing is given up: what there may be of it stays where it is.
  // With `force` so is one that its claim has left, if its driver is away or fails to delete its
  // storage.
  // Errors, not applied: InvalidArgument for an unknown kind; NotFound; Unavailable for a pod that
  // is not known as long as a source or the records may still have it; FailedPrecondition if `yes`
  // is needed (CheckDelete in agent/command_admission.h), or `force` for a volume in the phase
  // Undoing; those of ObjectCommands::Delete, ObjectDirectory::DeletePod and PodCommands::Delete.
  // They are maybe applied if the pod's object is gone already.
  using Done = std::function<void(const Status&)>;
  struct Command {
    v1::DeleteRequest request;
    // It outlives the command. Its object and its warning are filled before `done` is called.
    v1::DeleteResponse* response;  // outlives the command
    Done done;
  };

  // The backend outlives this object, and this object outlives every command.
  explicit DeleteCommands(ControlBackend& backend) : backend_(backend) {}

  // Carries out the commands; one that is refused stops no other. A task of the control thread
  // takes only a few of many.
  void Delete(std::vector<Command> commands);

 private:
  struct PodDeletion {
    PodUid uid;
    bool force = false;
    bool by_name = false;  // also deletes a pod that has taken the place of this one
    v1::DeleteResponse* response = nullptr;
    Done done;
    bool had_object = false;
  };
  using PodDeletions = std::shared_ptr<std::vector<PodDeletion>>;

  void TakeSome(const std::shared_ptr<std::vector<Command>>& commands, size_t from);
  void Take(Command& command);
  void TakePod(Command& command);
  // A PersistentVolume that was begun for a claim which is gone: gives up that it is undone.
  void TakeUndoing(Command& command, const std::string& volume, const std::string& provisioner);
  // Whether the command gives up that the PersistentVolume is reclaimed; then it is carried out.
  bool TakeReclaim(const Command& command, const std::string& volume);
  // Deletes an object of any kind but Pod.
  void TakeObject(Command& command, const ObjectKey& key);
  // Removes the waiting pods from the directory of applied objects. If other pods are being removed
  // right now, it does so after them.
  void StartPods();
  // Answers the commands for pods that stay, and goes on with the others. Blocks: on disk.
  void TakeOutOfDirectory(std::vector<PodDeletion> pods);
  void LetPodsGo(const PodDeletions& pods, size_t from);

  ControlBackend& backend_;
  std::vector<PodDeletion> waiting_;
  bool busy_ = false;
};

}  // namespace volumed
