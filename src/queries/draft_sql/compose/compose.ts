import type { Select } from '../../../dialect/ast.ts';
import type { Draft } from '../draft.ts';
import { unclear } from '../unclear.ts';
import { conversionQuery } from './conversions.ts';
import { numbersQuery } from './numbers.ts';
import { peopleQuery } from './people.ts';
import { rowsQuery } from './rows.ts';

/** The query that a draft asks for. @throws QueryError `unclear` */
export function composeQuery(draft: Draft): Select {
  if (!isAboutSomething(draft))
    throw unclear(
      'It is not clear what to count or list: name an event, a property, or say users, persons or sessions.',
    );
  if (draft.compared !== null && draft.period !== null)
    throw unclear('Two times are compared here; leave out the third, or ask for each by itself.');
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
