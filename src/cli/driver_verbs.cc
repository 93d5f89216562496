// The verb csi: a CSI driver's calls, and calls by hand.
#include <iostream>
#include <optional>
#include <string>

#include "cli/calls.h"
#include "cli/driver_tables.h"

namespace volumed {
namespace {

struct CsiWords {
  std::string driver, rpc, json_file;
  bool trace = false;
  double back_s = 0;  // 0: all that is kept

  void Check() const {
    if (trace != rpc.empty()) {
      throw CLI::ValidationError("csi", trace ? "--trace takes no RPC"
                                              : "it takes an RPC, such as NodeGetInfo, or --trace");
    }
    if (json_file.starts_with("{")) {
      throw CLI::ValidationError("csi", "--json takes a file, or - for standard input");
    }
    if (trace && !json_file.empty()) {
      throw CLI::ValidationError("csi", "--json is for an RPC");
    }
    if (!trace && back_s != 0) {
      throw CLI::ValidationError("csi", "--back is for --trace");
    }
  }
};

ExitCode ShowTrace(const CliContext& context, const CsiWords& words) {
  v1::GetDriverTraceRequest request;
  request.set_driver(words.driver);
  if (words.back_s > 0) request.set_back_ms(MillisecondsOf(words.back_s).count());
  v1::GetDriverTraceResponse response;
  const ExitCode code = CallAndSay(context, &Stub::GetDriverTrace, request, &response, "");
  if (code == kExitOk) PrintTrace(response, context.format, NowUnixMs(), std::cout);
  return code;
}

ExitCode RunCsi(const CliContext& context, const CsiWords& words) {
  if (words.trace) return ShowTrace(context, words);
  v1::CallDriverRequest request;
  request.set_driver(words.driver);
  request.set_method(words.rpc);
  // The agent is to answer before the call to it is given up.
  request.set_timeout_ms((context.timeout * 9 / 10).count());
  if (!words.json_file.empty()) {
    const std::optional<std::string> json = ReadManifest(words.json_file);
    if (!json) return kExitUsage;
    request.set_request_json(*json);
  }
  v1::CallDriverResponse response;
  // What the driver answers is JSON, whatever the format.
  const ExitCode code = CallAndSay(context, &Stub::CallDriver, request, &response, "");
  if (code == kExitOk) std::cout << response.response_json() << "\n";
  return code;
}

}  // namespace

void AddDriverVerbs(const Verbs& verbs) {
  verbs.Add<CsiWords>(
      "csi", "call a CSI driver by hand, or show what it was asked lately",
      [](CLI::App& verb, CsiWords& words) {
        verb.add_option("driver", words.driver, "as `get drivers` shows it")
            ->required()
            ->type_name("DRIVER");
        verb.add_option("rpc", words.rpc,
                        "of csi.v1: NodeGetInfo; one that changes something needs the role admin")
            ->type_name("RPC");
        verb.add_option("--json", words.json_file,
                        "the request, in protobuf's JSON; - is standard input; default: empty")
            ->type_name("FILE");
        verb.add_flag("--trace", words.trace,
                      "show the calls of the last hour, without secrets; -o wide: with messages");
        AddSeconds(verb, "--back", words.back_s, "with --trace: only calls of so many seconds");
      },
      RunCsi);
}

}  // namespace volumed
