// A CSI driver of a test: a real gRPC server on a unix socket, which answers as it is told and
// takes any RPC; and a server of raw bytes, for what no gRPC server does.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace volumed {

// A directory for sockets, with a short path.
class SocketDirectory {
 public:
  SocketDirectory();
  ~SocketDirectory();
  std::string Socket(const std::string& name = "csi.sock") const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

struct ScriptedAnswer {
  grpc::Status status = grpc::Status::OK;
  std::string bytes = {};  // of the message; of an OK alone
  bool no_message = false;
  bool twice = false;  // the message is sent two times
};

// A call as it came.
struct ScriptedCall {
  int number = 0;           // from 0
  std::string method = {};  // "/csi.v1.Node/NodeStageVolume"
  std::string request = {};
};

// Threads: any. Waits last 20 seconds at most, and then say that it did not happen.
class ScriptedDriver {
 public:
  // What to answer to the call of this number (from 0); nullopt: it is held until it is released.
  using Script = std::function<std::optional<ScriptedAnswer>(int number)>;
  // The same by what the call is. It runs on a thread of gRPC's, several at a time.
  using Handler = std::function<std::optional<ScriptedAnswer>(const ScriptedCall&)>;

  // Listens on return; an old socket file is replaced.
  ScriptedDriver(const std::string& socket, Script script);
  // `cancelled` is told which call's caller has gone, on such a thread.
  ScriptedDriver(const std::string& socket, Handler handler,
                 std::function<void(int number)> cancelled = {});
  // Ends what it holds, and its connections.
  ~ScriptedDriver();

  bool WaitForArrived(int calls);
  bool WaitForCancelled(int calls);
  int held();
  int most_held();
  std::vector<std::string> requests();  // as bytes, in the order in which they came
  std::string method(int number);
  // Answers the call that is held longest; false if none is.
  bool Release(const ScriptedAnswer& answer = {});
  // Answers the call of this number, which is held or will be. False: it has ended, the caller may
  // have gone.
  bool ReleaseCall(int number, const ScriptedAnswer& answer);

  static Script Always(const ScriptedAnswer& answer) {
    return [answer](int) { return answer; };
  }
  static Script Hold() {
    return [](int) { return std::nullopt; };
  }

 private:
  class Service;
  class Reactor;
  bool WaitFor(const std::function<bool()>& condition);

  Reactor* TakeHeld(int number);  // -1: the first; null: none. REQUIRES: mu_ is held.

  const Handler handler_;
  const std::function<void(int number)> cancelled_handler_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<Reactor*> held_;
  std::set<int> undecided_;                // the handler has not returned
  std::map<int, ScriptedAnswer> decided_;  // released before it has
  std::vector<std::string> requests_;
  std::vector<std::string> methods_;
  int most_held_ = 0;
  int cancelled_ = 0;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

// Accepts connections, and does with each the same, on a thread of its own. What it is told may
// use the connection until it returns; then the connection is closed.
class RawServer {
 public:
  RawServer(const std::string& socket, std::function<void(int connection)> serve);
  ~RawServer();

  // A SETTINGS frame without a setting, after which gRPC takes the connection for good.
  static void SendSettings(int connection);
  // Reads until the client has closed, or this server ends.
  void ReadOn(int connection);
  // Reads until it has what the client sends with a call: its HEADERS frame at least.
  bool ReadCall(int connection);

 private:
  int listener_ = -1;
  int stop_[2] = {-1, -1};
  std::thread thread_;
};

}  // namespace volumed
