import type { Expression, GroupBy, Select } from '@exportd/dialect/ast';
import { buildSelect } from '@exportd/dialect/ast_builders';
import { QueryError } from './query_errors.ts';
import type { DialectReader, ReadOptions } from './dialect_reader.ts';

/** A condition and the path of its field in the request. */
export interface RequestedCondition {
  readonly condition: Expression;
  readonly attr: string;
}

/** A SELECT built from the items of a request's lists, together with those items. */
export interface SelectWithItems {
  readonly select: Select;
  /** The columns of each entry of `select`, and its GROUP BY keys in a grouped query. */
  readonly entries: readonly {
    readonly columns: readonly Expression[];
    readonly keys: readonly Expression[];
  }[];
  /** Conditions for WHERE. */
  readonly conditions: readonly RequestedCondition[];
  /** Conditions for HAVING. */
  readonly groupConditions: readonly RequestedCondition[];
  /** How many ORDER BY items come from the request; they come first. */
  readonly ordered: number;
}

/**
 * Runs a SELECT. If the dialect rejects it, compiles its items one after another so that the error names the first item
 * that fails.
 * @throws QueryError
 */
export async function readWithItemErrors(
  reader: DialectReader,
  items: SelectWithItems,
  options: ReadOptions,
): ReturnType<DialectReader['read']> {
  try {
    return await reader.read(items.select, options);
  } catch (error) {
    if (error instanceof QueryError && error.code === 'dialect_error')
      for (const { attr, select } of itemStatements(items)) reader.compile(select, { ...options, attr });
    throw error;
  }
}

function itemStatements({
  select,
  entries,
  conditions,
  groupConditions,
  ordered,
}: SelectWithItems): readonly { readonly attr: string; readonly select: Select }[] {
  const columns: Select = { ...select, where: null, having: null, orderBy: [] };
  const counted = buildSelect('select count() from events');
  return [
    ...entries.map((_entry, index) => {
      const selected = entries.slice(0, index + 1);
      return {
        attr: `query__select__${index}`,
        select: {
          ...columns,
          columns: selected.flatMap((entry) => entry.columns),
          groupBy: groupedBy(
            select.groupBy,
            selected.flatMap((entry) => entry.keys),
          ),
        },
      };
    }),
    { attr: 'query__select', select: columns },
    ...conditions.map(({ attr, condition }) => ({ attr, select: { ...columns, where: condition } })),
    ...groupConditions.map(({ attr, condition }) => ({ attr, select: { ...counted, having: condition } })),
    { attr: 'query__where', select: { ...select, orderBy: [] } },
    ...select.orderBy.slice(0, ordered).map((item, index) => ({
      attr: `query__orderBy__${index}`,
      select: { ...columns, orderBy: [item] },
    })),
    { attr: 'query__orderBy', select },
  ];
}

const groupedBy = (groupBy: GroupBy | null, items: readonly Expression[]): GroupBy | null =>
  groupBy === null || items.length === 0 ? null : { ...groupBy, items };
