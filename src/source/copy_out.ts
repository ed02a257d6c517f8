import type pg from 'pg';
import { failSpan } from '../tracing/spans.ts';
import { beginStatementSpan } from '../tracing/statements.ts';
import { type BlockLimits, createBlockBuilder } from './block_builder.ts';
import type { CopiedBlocks } from './source.ts';
import { tapCopyData } from './copy_data_tap.ts';
import { newMemory, type BlockMemory } from './block_memory.ts';
import type { ModelQuery } from './model_query.ts';

/** The statement that sends the rows of a query. */
export const copyStatement = (select: string): string => `copy (${select}) to stdout (format binary)`;

/** The interface that pg expects of a query object. pg wraps `callback` to clear its own timeout. */
interface CopyQuery extends pg.Submittable {
  callback: (error?: Error | null) => void;
  handleCommandComplete: () => void;
  handleReadyForQuery: () => void;
  handleError: (error: Error) => void;
}

/**
 * Runs `COPY (select) TO STDOUT (FORMAT binary)` and collects its rows in blocks. Cancel the statement in
 * `bounds.onFull`. Rejects with the error of PostgreSQL or of the connection.
 */
export function copyOut(
  connection: pg.PoolClient,
  select: string,
  query: Pick<ModelQuery, 'columns' | 'key'>,
  bounds: BlockLimits,
  memory: BlockMemory = newMemory,
): Promise<CopiedBlocks> {
  return new Promise((resolve, reject) => {
    const builder = createBlockBuilder(query, bounds, memory);
    const text = copyStatement(select);
    const span = beginStatementSpan(text, 'source');
    let restore = (): void => undefined;

    const end = (error?: Error | null): void => {
      restore();
      try {
        const copied = builder.finish();
        // After `onFull` the error is that of the cancellation. The rows received before it are complete.
        if (error && !copied.truncated) {
          if (span) failSpan(span, error);
          reject(error);
        } else resolve(copied);
      } catch (failure) {
        if (span) failSpan(span, failure);
        reject(failure instanceof Error ? failure : new Error(String(failure)));
      } finally {
        span?.end();
      }
    };

    const copy: CopyQuery = {
      callback: end,
      submit: (wire) => {
        restore = tapCopyData(wire.stream, builder);
        wire.query(text);
      },
      handleCommandComplete: () => undefined,
      handleReadyForQuery: () => copy.callback(),
      handleError: (error) => copy.callback(error),
    };
    connection.query(copy);
  });
}
