// ObjectSource: where pods and the objects they use come from. A source delivers complete lists,
// never differences, so that a listener which missed one is right again after the next.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kube/decode.h"
#include "kube/objects.h"

namespace volumed {

struct ObjectWithOrigin {
  ObjectPtr object;  // never null
  std::string file;  // path of the file it was read from
  int document = 0;  // from 0
};

struct ObjectList {
  std::string source;
  // False: the source could not be listed and has no earlier list; `objects` is empty then and
  // means nothing. True: `objects` is everything of the source, last good objects included.
  bool complete = false;
  std::vector<ObjectWithOrigin> objects;
  std::vector<DecodeProblem> problems;  // all that stand now, not only new ones
};

using ObjectListener = std::function<void(ObjectList)>;

// Threads: control thread, for every method; the listener is called there too. Blocks: never.
class ObjectSource {
 public:
  virtual ~ObjectSource() = default;

  // Unique among the sources of a process; stable over restarts.
  virtual const std::string& name() const = 0;

  // Begins to deliver. The first list comes soon and asynchronously, also when it is incomplete.
  // REQUIRES: called once.
  virtual void Start(ObjectListener listener) = 0;

  // Reads everything again and drops what is kept only because its absence was not a command
  // (the last good objects of broken files and of a vanished directory). An administrator's act.
  virtual void Forget() = 0;
};

}  // namespace volumed
