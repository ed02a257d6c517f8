import type { Scope } from '../resolve/scope.ts';
import type { Value } from '../resolve/value.ts';
import type { Output } from './select_items.ts';

/** @throws DialectError for an ungrouped column in a grouping query */
export function rejectUngrouped(outputs: readonly Output[], having: Value | null, scope: Scope): void {
  const values = [...outputs.map(({ value }) => value), ...(having === null ? [] : [having])];
  for (const { traits } of values) {
    const { column } = traits;
    if (column === null) continue;
    const { text } = scope.statement.queryText;
    const columnText = text.slice(column.start, column.end);
    throw scope.statement.error(
      `Column \`${columnText}\` is neither under an aggregate function nor in GROUP BY.`,
      column,
      `Add it to GROUP BY, or write any(${columnText}).`,
    );
  }
}
