import { parentPort, workerData } from 'node:worker_threads';
import type { RelationSettings } from '../../source/relations.ts';
import { builtInQueryKinds } from '../built_in_kinds.ts';
import { checkQuery } from '../check_query.ts';
import { computeOutput } from '../compute_output.ts';
import { draftByRules } from '../draft_sql/draft_by_rules.ts';
import { parseForm } from '../parse_form.ts';
import { createRemoteConnection, StatementFailed } from './remote_connection.ts';
import type { FromThread, ThreadTask, ToThread } from './thread_messages.ts';
import { transferError } from './transferred_error.ts';

/**
 * The program of a thread that computes queries, one at a time. Its statements run in the process, which owns the
 * connection, so that the process can cancel them after it has ended the thread. Node runs this file from source, even
 * where the rest of the process was transpiled (Jest).
 */
const kinds = builtInQueryKinds(workerData as RelationSettings);
const send = (message: FromThread, transferred: readonly ArrayBuffer[] = []): void =>
  parentPort?.postMessage(message, transferred);
const connection = createRemoteConnection((request) => send({ type: 'statement', request }));

async function perform(given: ThreadTask): Promise<void> {
  try {
    if (given.type === 'parse') send({ type: 'parsed', form: parseForm(kinds, given.task) });
    else if (given.type === 'check') {
      checkQuery(given.task);
      send({ type: 'checked' });
    } else if (given.type === 'draft') send({ type: 'drafted', query: draftByRules(given.task.input) });
    else {
      // The process reports the progress, as it reads the rows.
      const output = await computeOutput(kinds, given.task, { connection, progress: () => undefined });
      send({ type: 'computed', output }, [output.json.buffer as ArrayBuffer]);
    }
  } catch (error) {
    if (error instanceof StatementFailed) send({ type: 'failed_statement', id: error.statementId });
    else send({ type: 'failed', error: transferError(error) });
  }
}

parentPort?.on('message', (message: ToThread) => {
  if ('task' in message) void perform(message);
  else connection.receive(message);
});
