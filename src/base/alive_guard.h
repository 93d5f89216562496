// AliveGuard: lets a task that was posted for an object find out whether that object is still
// there.
//
// A task that is queued, a timer and the completion of an operation outlive their owner. Each takes
// a Watch along, and asks it before it touches the owner.
#pragma once

#include <memory>
#include <utility>

namespace volumed {

// A member of the owner, usually its last one: members are destroyed in reverse order, so that
// nothing which the others' destructors call finds the owner alive. Threads: a Watch may be copied
// and destroyed on any thread; alive() is asked, and the owner destroyed, on the owner's thread
// alone, since its answer holds only until that thread does something else. Blocks: never.
class AliveGuard {
 public:
  class Watch {
   public:
    bool alive() const { return !owner_.expired(); }

   private:
    friend class AliveGuard;
    explicit Watch(const std::shared_ptr<char>& owner) : owner_(owner) {}
    std::weak_ptr<char> owner_;
  };

  AliveGuard() = default;
  AliveGuard(const AliveGuard&) = delete;
  AliveGuard& operator=(const AliveGuard&) = delete;

  // A task that does more than call one function takes a Watch along and asks it itself.
  Watch watch() const { return Watch(life_); }

  // Returns `function` as one that does nothing once the owner is gone. What it captured lives as
  // long as what is returned does, also if the owner went before.
  template <typename Function>
  auto Guarded(Function function) const {
    return [watch = watch(), function = std::move(function)](auto&&... arguments) mutable {
      if (watch.alive()) function(std::forward<decltype(arguments)>(arguments)...);
    };
  }

  // Every Watch until now finds its owner gone, although the owner goes on: what was begun is given
  // up, or the owner is in its destructor and wants no more calls.
  void Renew() { life_ = std::make_shared<char>(); }

 private:
  std::shared_ptr<char> life_ = std::make_shared<char>();
};

}  // namespace volumed
