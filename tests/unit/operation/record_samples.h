// Values of every kind of record: every field set that there was when the sample was made, nothing
// set, every enumerator. A field that comes later has a sample of its own, so that older rows stay
// proven.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operation/object_record.h"
#include "operation/storage_record.h"
#include "operation/volume_record.h"

namespace volumed {

struct RecordSample {
  std::string name;  // "<kind of record> <what is special about the value>"
  Record row;        // as the value is encoded now
  // What is wrong if this row is decoded: "" if the value comes out.
  std::function<std::string(const Record&)> problem_of;
};

// The same ones each time.
std::vector<RecordSample> AllRecordSamples();

}  // namespace volumed
