import type { Settings } from '../config/settings.ts';
import { classifyError } from '../failures/classify_error.ts';
import { applicationName } from '../source/postgres_source.ts';
import { connectToSource, type SourceConnections } from '../source/source_connection.ts';
import { CliError } from './cli_error.ts';
import { databaseNameOf } from './running_stack.ts';

/** Timeout of a statement, in milliseconds: a person waits for it. */
const statementTimeoutMs = 10_000;

/** Runs `work` with one connection to the source. @throws CliError when the source cannot be used */
export async function withSource<Result>(
  { SOURCE_DATABASE_URL: sourceUrl }: Settings,
  work: (connections: SourceConnections) => Promise<Result>,
): Promise<Result> {
  const connections = connectToSource({ sourceUrl, applicationName, maxConnections: 1, statementTimeoutMs });
  try {
    return await work(connections);
  } catch (error) {
    const { type, message } = classifyError(error);
    throw type === 'UnexpectedError' ? error : new CliError(`${databaseNameOf(sourceUrl)}: ${message}`);
  } finally {
    await connections.close();
  }
}
