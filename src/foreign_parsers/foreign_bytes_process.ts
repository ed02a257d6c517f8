/** The program of a process that reads what others own. */
import { parseManifest } from '../destination/manifest.ts';
import { serveForeignBytes } from '../foreign_bytes/serve_foreign_bytes.ts';
import { readRejectedBatches, readRowBatches } from '../readers/row_batches.ts';
import { describeLog, foldLog, summarizeCommit } from '../tables/read_log.ts';

serveForeignBytes(
  {
    manifest: parseManifest,
    'state of a table': foldLog,
    'description of a table': describeLog,
    'commit of a table': summarizeCommit,
  },
  {
    'rows of a file': readRowBatches,
    'keys of rejected rows': readRejectedBatches,
  },
);
