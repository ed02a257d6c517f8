import type { SourceConnections } from '../source_connection.ts';
import type { ReadCatalog } from './report.ts';

/** Reads with a separate transaction for each statement, so that a rejected one does not end those after it. */
export const catalogReader =
  (connections: SourceConnections, signal?: AbortSignal): ReadCatalog =>
  (text, values = [], settings = {}) =>
    connections.read(settings, signal, async ({ connection }) => {
      const { rows } = await connection.query(text, [...values]);
      // The caller knows the columns of its statement.
      return rows as never[];
    });
