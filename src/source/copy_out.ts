import type pg from 'pg';
import { createBlockBuilder, type GatherBounds, type GatheredBlocks } from './block_builder.ts';
import { tapCopyData } from './copy_data_tap.ts';
import type { ModelQuery } from './model_query.ts';

/** What pg asks of a query object; it replaces `callback` by one that also ends its own time limit. */
interface CopyQuery extends pg.Submittable {
  callback: (error?: Error | null) => void;
  handleCommandComplete: () => void;
  handleReadyForQuery: () => void;
  handleError: (error: Error) => void;
}

/**
 * Runs `COPY (select) TO STDOUT (FORMAT binary)` and gathers its rows as they come. When there are enough,
 * `bounds.onEnough` is the place to cancel the statement. Rejects with PostgreSQL's error, or that of the connection.
 */
export function copyOut(
  connection: pg.PoolClient,
  select: string,
  query: ModelQuery,
  bounds: GatherBounds,
): Promise<GatheredBlocks> {
  return new Promise((resolve, reject) => {
    const builder = createBlockBuilder(query, bounds);
    let restore = (): void => undefined;

    const end = (error?: Error | null): void => {
      restore();
      try {
        const gathered = builder.finish();
        // An error after the cut is the cancellation: what was taken before is whole.
        if (error && !gathered.cut) reject(error);
        else resolve(gathered);
      } catch (failure) {
        reject(failure instanceof Error ? failure : new Error(String(failure)));
      }
    };

    const copy: CopyQuery = {
      callback: end,
      submit: (wire) => {
        restore = tapCopyData(wire.stream, builder);
        wire.query(`copy (${select}) to stdout (format binary)`);
      },
      handleCommandComplete: () => undefined,
      handleReadyForQuery: () => copy.callback(),
      handleError: (error) => copy.callback(error),
    };
    connection.query(copy);
  });
}
