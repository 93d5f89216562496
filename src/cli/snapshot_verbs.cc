// The verb snapshot: snapshots of pool volumes, made, watched and taken back by hand.
#include <iostream>
#include <string>

#include "base/byte_text.h"
#include "cli/calls.h"
#include "cli/snapshot_tables.h"

namespace volumed {
namespace {

struct SnapshotIdWords {
  std::string id;
  bool abandoned = false;  // of delete
};
struct SnapshotCreateWords {
  std::string volume, name;
};
struct SnapshotGetWords {
  std::string id, volume;
};
struct SnapshotRestoreWords {
  std::string id, name;
  int64_t size_bytes = 0;
};
struct SnapshotWatchWords {
  std::string id;
  double interval_s = 1;
};

void SayId(const CliContext& context, const google::protobuf::Message& response,
           const std::string& text) {
  if (IsForPrograms(context.format)) {
    PrintMessage(response, context.format, std::cout);
  } else {
    std::cout << text << "\n";
  }
}

ExitCode RunSnapshotCreate(const CliContext& context, const SnapshotCreateWords& words) {
  v1::CreateSnapshotRequest request;
  request.set_volume(words.volume);
  request.set_namespace_(context.name_space);
  // A name of its own, if none is given: nobody repeats this call.
  request.set_name(words.name.empty() ? "at-" + std::to_string(NowUnixMs()) : words.name);
  v1::CreateSnapshotResponse response;
  const ExitCode code = CallAndSay(context, &Stub::CreateSnapshot, request, &response, "");
  if (code != kExitOk) return code;
  const v1::Snapshot& made = response.snapshot();
  SayId(context, response, "snapshot " + made.id() + " of " + made.volume() + ": " + made.phase());
  return kExitOk;
}

ExitCode RunSnapshotGet(const CliContext& context, const SnapshotGetWords& words) {
  return GetSnapshots(context, words.id, words.volume);
}

ExitCode RunSnapshotDelete(const CliContext& context, const SnapshotIdWords& words) {
  v1::DeleteSnapshotRequest request;
  request.set_id(words.id);
  request.set_abandoned(words.abandoned);
  v1::DeleteSnapshotResponse response;
  return CallAndSay(context, &Stub::DeleteSnapshot, request, &response,
                    "snapshot " + words.id + " deleted");
}

ExitCode RunSnapshotCancel(const CliContext& context, const SnapshotIdWords& words) {
  v1::CancelSnapshotRequest request;
  request.set_id(words.id);
  v1::CancelSnapshotResponse response;
  return CallAndSay(context, &Stub::CancelSnapshot, request, &response,
                    "snapshot " + words.id + ": nothing of it goes on any more");
}

ExitCode RunSnapshotRestore(const CliContext& context, const SnapshotRestoreWords& words) {
  v1::RestoreSnapshotRequest request;
  request.set_id(words.id);
  request.set_name(words.name);
  request.set_size_bytes(words.size_bytes);
  v1::RestoreSnapshotResponse response;
  const ExitCode code = CallAndSay(context, &Stub::RestoreSnapshot, request, &response, "");
  if (code != kExitOk) return code;
  if (!IsForPrograms(context.format)) {
    std::cerr << "volume " << response.volume() << " of " << FormatBytes(response.size_bytes())
              << " was made; its PersistentVolume, for `volumectl apply -f -`:\n";
  }
  SayId(context, response, response.manifest());
  return kExitOk;
}

ExitCode RunSnapshotWatch(const CliContext& context, const SnapshotWatchWords& words) {
  v1::WatchSnapshotRequest request;
  request.set_id(words.id);
  request.set_interval_ms(MillisecondsOf(words.interval_s).count());
  std::string last_phase;
  Client client(context.socket, context.timeout);
  const grpc::Status status = client.Stream<v1::WatchSnapshotRequest, v1::WatchSnapshotResponse>(
      &Stub::WatchSnapshot, request, std::nullopt, [&](const v1::WatchSnapshotResponse& answer) {
        last_phase = answer.gone() ? "" : answer.snapshot().phase();
        PrintSnapshotProgress(answer, context.format, std::cout);
      });
  if (!status.ok()) return ReportFailure(status, context.socket);
  return last_phase == "Ready" ? kExitOk : kExitError;
}

void DeclareSnapshotId(CLI::App& verb, std::string& id) {
  verb.add_option("id", id, "as `get snapshots` shows it")->required()->type_name("SNAPSHOT");
}

void DeclareSnapshotCreate(CLI::App& verb, SnapshotCreateWords& words) {
  verb.add_option("volume", words.volume,
                  "a pool's volume by its id, its PersistentVolume (pv/NAME), or its claim: "
                  "pvc/NAME, NAMESPACE/NAME")
      ->required()
      ->type_name("PV");
  verb.add_option("--name", words.name,
                  "the same name finds the same snapshot; default: a new one each time")
      ->type_name("NAME");
}

void DeclareSnapshotRestore(CLI::App& verb, SnapshotRestoreWords& words) {
  DeclareSnapshotId(verb, words.id);
  verb.add_option("pv-name", words.name, "of the PersistentVolume that stands for the new volume")
      ->required()
      ->type_name("PVNAME");
  verb.add_option("--size", words.size_bytes,
                  "of the volume, not below that of the snapshot, which is the default")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(CLI::PositiveNumber)
      ->type_name("BYTES");
}

}  // namespace

ExitCode FetchSnapshots(const CliContext& context, const std::string& id, const std::string& volume,
                        v1::GetSnapshotsResponse* response) {
  v1::GetSnapshotsRequest request;
  request.set_id(id);
  request.set_volume(volume);
  request.set_namespace_(context.name_space);
  const ExitCode code = CallAndSay(context, &Stub::GetSnapshots, request, response, "");
  const bool is_missing = code == kExitOk && !id.empty() && response->snapshots().empty();
  return is_missing ? ReportNone(context, "snapshot", id, false) : code;
}

ExitCode GetSnapshots(const CliContext& context, const std::string& id, const std::string& volume) {
  v1::GetSnapshotsResponse response;
  const ExitCode code = FetchSnapshots(context, id, volume, &response);
  if (code == kExitOk) PrintSnapshots(response, context.format, NowUnixMs(), std::cout);
  return code;
}

void AddSnapshotVerbs(const Verbs& verbs) {
  const Verbs snapshot = verbs.Group("snapshot", "snapshots of the volumes of this node's pools");
  snapshot.Add<SnapshotCreateWords>("create", "make one of a volume", DeclareSnapshotCreate,
                                    RunSnapshotCreate);
  snapshot.Add<SnapshotGetWords>(
      "get", "show which there are",
      [](CLI::App& verb, SnapshotGetWords& words) {
        verb.add_option("id", words.id, "one of them, in whatever phase")->type_name("SNAPSHOT");
        verb.add_option("--volume", words.volume, "only those of this volume, as in create")
            ->type_name("PV");
      },
      RunSnapshotGet);
  snapshot.Add<SnapshotIdWords>(
      "delete", "delete one with its data",
      [](CLI::App& verb, SnapshotIdWords& words) {
        DeclareSnapshotId(verb, words.id);
        AddAbandoned(verb, words.abandoned);
      },
      RunSnapshotDelete);
  snapshot.Add<SnapshotIdWords>(
      "cancel", "end what is being made or copied; without effect on one that is ready",
      [](CLI::App& verb, SnapshotIdWords& words) { DeclareSnapshotId(verb, words.id); },
      RunSnapshotCancel);
  snapshot.Add<SnapshotRestoreWords>("restore",
                                     "make a new volume of one, and print its PersistentVolume",
                                     DeclareSnapshotRestore, RunSnapshotRestore);
  snapshot.Add<SnapshotWatchWords>(
      "watch", "show how far one is, until nothing goes on any more",
      [](CLI::App& verb, SnapshotWatchWords& words) {
        DeclareSnapshotId(verb, words.id);
        verb.add_option("--interval", words.interval_s, "seconds between two answers")
            ->check(CLI::Range(0.1, 60.0));
      },
      RunSnapshotWatch);
}

}  // namespace volumed
