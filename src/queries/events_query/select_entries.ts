import type { Expression } from '../../dialect/ast.ts';
import { buildExpression, buildField } from '../../dialect/ast_builders.ts';
import { hasAggregate, isConstant, withoutName } from '../aggregate_calls.ts';
import { parseSelectItemAt } from '../parse_fragments.ts';
import { QueryError } from '../query_errors.ts';
import { starColumns } from './star.ts';

/** One entry of `select`. */
export interface EventEntry {
  /** The column name in the response. */
  readonly column: string;
  readonly format: 'value' | 'event' | 'person' | 'display_name';
  /** The statement columns of the entry, at least one. */
  readonly expressions: readonly [Expression, ...Expression[]];
  readonly isAggregate: boolean;
  /** GROUP BY keys beside an aggregate. */
  readonly keys: readonly Expression[];
}

const distinctId = buildField('events', 'distinct_id');

/** A person entry needs the distinct id, which stands for events without a person. */
const personEntry = (column: string, format: 'person' | 'display_name', isGrouped: boolean): EventEntry => ({
  column,
  format,
  expressions: [distinctId, buildExpression(isGrouped ? 'any(events.person_id)' : 'events.person_id')],
  isAggregate: false,
  keys: [distinctId],
});

/**
 * Parses the entries of `select`.
 * @param hasRowConditions whether a condition contains an aggregate
 * @throws QueryError with the path of the entry
 */
export function selectEntries(select: readonly string[], hasRowConditions: boolean): readonly EventEntry[] {
  const items = select.map((text, index) => ({
    text,
    attr: `query__select__${index}`,
    item: parseSelectItemAt(text, `query__select__${index}`),
  }));
  const isGrouped = hasRowConditions || items.some(({ item }) => hasAggregate(item));
  return items.map(({ text, attr, item }) => entryOf(text, item, attr, isGrouped));
}

function entryOf(text: string, item: Expression, attr: string, isGrouped: boolean): EventEntry {
  const column = item.kind === 'alias' ? item.name.text : text;
  const expression = withoutName(item);
  if (expression.kind === 'star' && isPlain(expression)) {
    const [first, ...more] = starColumns;
    if (first === undefined) throw new Error('An event has columns.');
    return { column, format: 'event', expressions: [first, ...more], isAggregate: false, keys: starColumns };
  }
  if (expression.kind === 'star' || expression.kind === 'columns')
    throw new QueryError('not_supported', 'Use a plain `*`, or list the columns explicitly.', { attr });
  if (expression.kind === 'field' && expression.path.length === 1) {
    const name = expression.path[0]?.text;
    if (name === 'person') return personEntry(column, 'person', isGrouped);
    if (name === 'person_display_name') return personEntry(column, 'display_name', isGrouped);
  }
  const isAggregate = hasAggregate(expression);
  return {
    column,
    format: 'value',
    expressions: [item],
    isAggregate,
    keys: isAggregate || isConstant(expression) ? [] : [expression],
  };
}

const isPlain = ({ table, exclude, replace }: Extract<Expression, { kind: 'star' }>): boolean =>
  table.length === 0 && exclude.length === 0 && replace.length === 0;
