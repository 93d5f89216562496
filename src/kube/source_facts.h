// What has to be decided for every kind of volume source. Each source (kube/volume_sources.h) says
// it beside its fields, so that a new kind does not compile before it is decided.
//
// Values; threads: any.
#pragma once

#include <string>
#include <vector>

namespace volumed {

class ProblemSink;

// Which rules a manifest's source has to keep.
enum class SourceRules {
  kOfSingleFields,  // those in the declaration of its fields
  kOverFields,      // CheckSource() is overloaded for the source as well
};

// Whether a pod's volume with the source needs Secrets or ConfigMaps of the pod's namespace.
enum class SourceObjects {
  kNone,
  kNamed,  // AddObjectsOf() is overloaded for the source
};

// Whether the source says where its data lies, so that two volumes with one storage are found out.
// The place is as the manifest spells it.
enum class SourceStorage {
  kUnnamed,   // it has a storage of its own, none, or a device that is known once it is attached
  kOnNode,    // in its member `path`, on the node
  kOnServer,  // in its member `path`, on its member `server`
  kOfDriver,  // with its member `driver`, which calls it by its member `volume_handle`
};

// A source has its facts as the constant kFacts.
struct SourceFacts {
  // Has no defaults: every kind decides everything.
  constexpr SourceFacts(SourceRules its_rules, SourceObjects its_objects, SourceStorage its_storage)
      : rules(its_rules), objects(its_objects), storage(its_storage) {}

  SourceRules rules;
  SourceObjects objects;
  SourceStorage storage;
};

// What a volume needs of a pod's namespace. A name may be there twice, and its object be optional.
struct ObjectNames {
  std::vector<std::string> secrets;
  std::vector<std::string> config_maps;
};

}  // namespace volumed
