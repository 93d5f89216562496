// RecordedSecrets: which Secrets drivers may have been sent for the volumes on record. Their names
// alone are on record, never what they hold.
#pragma once

#include "volume/secrets_of_volume.h"
#include "volumemanager/found_at_start.h"

namespace volumed {

// Of the rows of devices, of pods' volumes, of volumes that claims have, and of those that are, or
// were, made here. Rows that cannot be read tell nothing. It decodes each volume of a CSI driver
// once, so it is not for the control thread. Threads: any. Blocks: never.
SentSecretsByDriver SecretsOnRecord(const FoundAtStart& found);

}  // namespace volumed
