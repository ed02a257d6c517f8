import type { Select } from '../../../dialect/ast.ts';
import type { Draft } from '../draft.ts';
import { unclear } from '../unclear.ts';
import { conversionQuery } from './conversions.ts';
import { numbersQuery } from './numbers.ts';
import { peopleQuery } from './people.ts';
import { rowsQuery } from './rows.ts';

/** Composes the query of a draft. @throws QueryError `unclear` */
export function composeQuery(draft: Draft): Select {
  if (!isAboutSomething(draft))
    throw unclear('Say what to count or list: an event, a property, users, persons or sessions.');
  if (draft.compared !== null && draft.period !== null)
    throw unclear('The prompt compares two periods and names a third. Remove it, or use separate prompts.');
  if (draft.steps.length > 0) return conversionQuery(draft);
  if (draft.without !== null || draft.times !== null) return peopleQuery(draft);
  return draft.rows && draft.breakdowns.every(({ kind }) => kind === 'property')
    ? rowsQuery(draft)
    : numbersQuery(draft);
}

const isAboutSomething = (draft: Draft): boolean =>
  draft.events.length > 0 ||
  draft.steps.length > 0 ||
  draft.measures.length > 0 ||
  draft.breakdowns.length > 0 ||
  draft.filters.length > 0 ||
  draft.rows ||
  draft.people ||
  draft.table !== null;
