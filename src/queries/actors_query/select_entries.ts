import type { Expression } from '../../dialect/ast.ts';
import { buildLiteral } from '../../dialect/ast_builders.ts';
import { hasAggregate, isConstant, withoutName } from '../aggregate_calls.ts';
import { parseSelectItemAt } from '../parse_fragments.ts';
import { QueryError } from '../query_errors.ts';
import type { ActorEntry } from './actor_kinds/actor_kind.ts';
import type { ActorsFrom } from './actors_source.ts';

/** One entry of `select`. */
export interface SelectEntry {
  /** The column name in the response. */
  readonly column: string;
  readonly expression: Expression;
  /** How the actor is formatted in place of the id in this column; null for a plain column. */
  readonly actorEntry: ActorEntry | null;
  readonly isAggregate: boolean;
  /** Whether it is a GROUP BY key beside an aggregate. */
  readonly isKey: boolean;
}

const notSupported = (message: string, attr: string): QueryError =>
  new QueryError('not_supported', message, { attr });

/** Entries that are unsupported for all actors, with the alternative. */
const unsupportedForAll: Readonly<Record<string, string>> = {
  matched_recordings: 'Matched recordings are not supported. Query session_replay_events in the dialect.',
  '*': 'List the columns explicitly.',
};

/** Parses the entries of `select`. @throws QueryError with the path of the entry */
export const selectEntries = (
  select: readonly string[],
  { kind, id, resolve }: ActorsFrom,
): readonly SelectEntry[] => {
  const unsupported = { ...unsupportedForAll, ...kind.unsupported };
  return select.map((text, index) => {
    const attr = `query__select__${index}`;
    const name = text.replace(/\s*--.*$/, '').trim();
    const reason = Object.hasOwn(unsupported, name) ? unsupported[name] : undefined;
    if (reason !== undefined) throw notSupported(reason, attr);
    const defaults = { column: text, isAggregate: false, isKey: true };
    const actorEntry = Object.hasOwn(kind.entries, name) ? kind.entries[name] : undefined;
    if (actorEntry !== undefined) return { ...defaults, expression: id, actorEntry };
    if (name === 'person.$delete')
      return { ...defaults, expression: buildLiteral(1), actorEntry: null, isKey: false };
    const item = parseSelectItemAt(text, attr);
    if (item.kind === 'star' || item.kind === 'columns')
      throw notSupported('List the columns explicitly.', attr);
    const expression = resolve(item);
    const isAggregate = hasAggregate(expression);
    return {
      column: item.kind === 'alias' ? item.name.text : text,
      expression,
      actorEntry: null,
      isAggregate,
      isKey: !isAggregate && !isConstant(withoutName(expression)),
    };
  });
};
