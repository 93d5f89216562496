// HangfsMount: a running hangfs (see hangfs.cc) for a test.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace volumed {

// Mounts on construction, heals and unmounts on destruction. Threads: one.
class HangfsMount {
 public:
  // `mount_point` is an empty directory, `control_path` a file that need not exist yet; `image` a
  // file that it shows as "image", or "".
  HangfsMount(const std::string& program, const std::string& mount_point,
              const std::string& control_path, const std::string& image = "")
      : mount_point_(mount_point), control_path_(control_path) {
    Heal();
    char* arguments[] = {const_cast<char*>(program.c_str()),
                         const_cast<char*>(control_path_.c_str()),
                         const_cast<char*>(mount_point_.c_str()),
                         image.empty() ? nullptr : const_cast<char*>(image.c_str()), nullptr};
    char* environment[] = {nullptr};
    if (::posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments, environment) != 0) {
      pid_ = -1;
      return;
    }
    // It is ready once its file is there; a process that ended never will be.
    for (int i = 0; i < 1000 && ::waitpid(pid_, nullptr, WNOHANG) == 0; ++i) {
      if (::access((mount_point_ + "/file").c_str(), F_OK) == 0) {
        mounted_ = true;
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  ~HangfsMount() {
    Heal();
    ::umount2(mount_point_.c_str(), MNT_DETACH);
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  HangfsMount(const HangfsMount&) = delete;
  HangfsMount& operator=(const HangfsMount&) = delete;

  bool mounted() const { return mounted_; }
  void Hang() { WriteControl("hang"); }   // a killed caller is let go
  void Die() { WriteControl("dead"); }    // a killed caller stays in uninterruptible sleep
  void FailIo() { WriteControl("eio"); }  // of "image"
  void Heal() { WriteControl(""); }

 private:
  void WriteControl(const std::string& word) { std::ofstream(control_path_) << word; }

  const std::string mount_point_;
  const std::string control_path_;
  pid_t pid_ = -1;
  bool mounted_ = false;
};

}  // namespace volumed
