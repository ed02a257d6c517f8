import { copyOut } from './copy_out.ts';
import { fingerprintPlanOf, statementSettings } from './pages.ts';
import type { CreateModelQuery } from './read_fingerprint.ts';
import type { RowBlock, RowRange } from './source.ts';
import type { SourceConnections } from './source_connection.ts';

/** The size of a sample: enough rows to see how well they compress, and few enough to encode without being noticed. */
const maxSampleBytes = 256 * 1024;

/**
 * Reads the first rows of a range, as one block that ends before `rows` rows when they are large. Null when the range
 * has no rows.
 */
export const readSample = (
  connections: SourceConnections,
  createQuery: CreateModelQuery,
  range: RowRange,
  rows: number,
  signal: AbortSignal | undefined,
): Promise<RowBlock | null> =>
  connections.read({}, signal, async ({ connection, set, cancel }) => {
    const query = await createQuery(connection, range);
    await set(statementSettings(query, range));
    const select = query.page(rows, { after: false, until: false });
    const limits = { blockBytes: maxSampleBytes, maxBytes: maxSampleBytes, onFull: cancel };
    const [block] = (await copyOut(connection, select, query, limits)).blocks;
    return block === undefined ? null : { ...block, fingerprint: fingerprintPlanOf(query, range) };
  });
