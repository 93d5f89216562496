// DeleteCommands: carries out commands to delete objects. What is given together, or comes while
// others are being carried out, shares the syncs that each of them waits for.
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
  // Told on any thread once nothing can bring the object back, or why it stays.
  using Done = std::function<void(const Status&)>;
  struct Command {
    v1::DeleteRequest request;
    v1::DeleteResponse* response;  // outlives the command
    Done done;
  };

  // The backend outlives this, and this every command.
  explicit DeleteCommands(ControlBackend& backend) : backend_(backend) {}

  // One that is refused stops no other. A few of many are taken at a time.
  void Delete(std::vector<Command> commands);

 private:
  struct PodDeletion {
    PodUid uid;
    bool force = false;
    bool by_name = false;  // whoever was put in its place goes likewise
    v1::DeleteResponse* response = nullptr;
    Done done;
    bool had_object = false;
  };
  using PodDeletions = std::shared_ptr<std::vector<PodDeletion>>;

  void TakeSome(const std::shared_ptr<std::vector<Command>>& commands, size_t from);
  void Take(Command& command);
  void TakePod(Command& command);
  // An object of a kind other than a pod's.
  void TakeObject(Command& command, const ObjectKey& key);
  // Takes the pods that wait out of the directory of what was applied, unless others are being
  // taken out: then they go after these.
  void StartPods();
  // Answers those that stay, and goes on with the others. Blocks: on disk.
  void TakeOutOfDirectory(std::vector<PodDeletion> pods);
  void LetPodsGo(const PodDeletions& pods, size_t from);

  ControlBackend& backend_;
  std::vector<PodDeletion> waiting_;
  bool busy_ = false;
};

}  // namespace volumed
