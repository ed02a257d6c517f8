import { type Comparison, findNodes, type Node } from '@exportd/dialect/ast';
import { buildSelect } from '@exportd/dialect/ast_builders';
import { DialectError, QueryText } from '@exportd/dialect/query_text';
import type { SourceRelation } from '@exportd/dialect/schema';
import { cohortIn, cohortsOf, isOfCohort } from '../filters/condition.ts';
import type { FilterScalar, PropertyFilter } from '../filters/schema.ts';
import type { DialectReader } from './dialect_reader.ts';
import { withFieldPath } from './expressions.ts';
import { asQueryError, QueryError } from './query_errors.ts';
import { type BreakdownFilter, cohortBreakdownOf } from './breakdowns.ts';
import { dialectTexts, treeOf } from './query_texts.ts';

/** A cohort that has persons. */
interface Cohort {
  readonly id: number;
  readonly name: string;
}

/** A cohort of a breakdown, or everyone. */
export interface BreakdownCohort {
  /** Null for everyone. */
  readonly id: number | null;
  readonly name: string;
}

/** Everyone, as a breakdown by cohorts names it. */
export const everyone = 'all';

const everyoneOfBreakdown: BreakdownCohort = { id: null, name: 'all users' };

/**
 * Finds a cohort. The source knows those that have persons alone.
 * @param cohort its id or its name
 * @throws QueryError if no person of the project is in it
 */
async function findCohort(reader: DialectReader, cohort: string | number, attr: string): Promise<Cohort> {
  const { cohortPeople } = reader.schema;
  if (cohortPeople === null)
    throw new QueryError('not_supported', 'The source has no cohorts: it lacks public.cohort_people.', {
      attr,
    });
  const found = await readCohort(reader, cohortPeople, cohort, attr);
  if (found === null) throw new QueryError('invalid_input', noPersons(cohort), { attr });
  return found;
}

const noPersons = (cohort: string | number): string =>
  `No person of this project is in the cohort ${cohort}.`;

/** Null if no person of the project is in it. */
async function readCohort(
  reader: DialectReader,
  cohortPeople: SourceRelation,
  cohort: string | number,
  attr: string,
): Promise<Cohort | null> {
  const hasNames = cohortPeople.columns.has('cohort_name');
  const columns = hasNames ? 'cohort_id, cohort_name' : 'cohort_id, null';
  const key = typeof cohort === 'number' ? 'cohort_id' : 'cohort_name';
  const { rows } = await reader.read(
    buildSelect(`select ${columns} from cohort_people where ${key} = {cohort} limit 1`, {
      cohort: { value: cohort },
    }),
    { attr },
  );
  const [found] = rows;
  if (!found) return null;
  const [id, name] = found;
  return { id: Number(id), name: typeof name === 'string' ? name : `Cohort ${String(id)}` };
}

/** The cohorts that a query is broken down by, in the order of the query; null for none. @throws QueryError */
export async function breakdownCohorts(
  filter: BreakdownFilter | null | undefined,
  reader: DialectReader,
): Promise<readonly BreakdownCohort[] | null> {
  const breakdown = cohortBreakdownOf(filter);
  if (breakdown === null) return null;
  const { cohorts, attr } = breakdown;
  const found: BreakdownCohort[] = [];
  for (const cohort of cohorts)
    found.push(
      isEveryone(cohort)
        ? everyoneOfBreakdown
        : await findCohort(
            reader,
            asQueryError(() => cohortIn(cohort, attr)),
            attr,
          ),
    );
  return found;
}

/** Clients of PostHog write 0 for everyone. */
const isEveryone = (cohort: string | number): boolean => [everyone, '0', 0].includes(cohort);

/**
 * The cohort of a point of a result that is broken down by cohorts: its id, or null for everyone.
 * @throws QueryError
 */
export function cohortOfPoint(
  value: string | number | readonly (string | number)[] | null | undefined,
  attr: string,
): number | null {
  const [cohort, another] = typeof value === 'object' && value !== null ? value : [value];
  if (cohort === null || cohort === undefined || (isEveryone(cohort) && another === undefined)) return null;
  const id = another === undefined ? asQueryError(() => cohortIn(cohort, attr)) : null;
  if (typeof id === 'number') return id;
  throw new QueryError('invalid_input', 'This must be the id of a cohort, or all.', { attr });
}

/** Fields of a query in which filters can be. */
const containers: ReadonlySet<string> = new Set([
  ...(['series', 'source', 'filters', 'funnelsFilter', 'exclusions'] as const),
  ...(['properties', 'fixedProperties'] as const),
]);

/**
 * Checks that the cohorts in the filters and the texts of a query have persons: a typing error would count nothing in silence.
 * @throws QueryError with the path of the cohort, and its position in a text
 */
export async function checkCohorts(query: object, reader: DialectReader): Promise<void> {
  const checked = new Set<string | number>();
  for (const { cohort, attr } of asQueryError(() => [...cohortsIn(query, 'query')]))
    if (!checked.has(cohort)) {
      await findCohort(reader, cohort, attr);
      checked.add(cohort);
    }
  const { cohortPeople } = reader.schema;
  // Compiling says what else is wrong with a text.
  if (cohortPeople === null) return;
  for (const { cohort, attr, text, at } of cohortsInTexts(query, cohortPeople))
    if (!checked.has(cohort)) {
      const found = await readCohort(reader, cohortPeople, cohort, attr);
      if (found === null)
        withFieldPath(attr, () => {
          throw new DialectError(new QueryText(text), noPersons(cohort), at);
        });
      checked.add(cohort);
    }
}

/** The cohorts that `IN COHORT` names in the texts of a query. */
function* cohortsInTexts(query: object, { columns }: SourceRelation) {
  for (const { text, attr, parse } of dialectTexts(query, 'query')) {
    const tree = mentionsCohorts.test(text) ? treeOf({ text, parse }) : null;
    for (const { right: at } of tree === null ? [] : findNodes(tree, isInCohort)) {
      const id = at.kind === 'number' ? Number(at.text) : NaN;
      if (Number.isSafeInteger(id)) yield { cohort: id, attr, text, at };
      if (at.kind === 'string' && columns.has('cohort_name')) yield { cohort: at.value, attr, text, at };
    }
  }
}

/** Parsing a long text takes a while. */
const mentionsCohorts = /cohort/i;

const isInCohort = (node: Node): node is Comparison =>
  node.kind === 'comparison' && (node.operator === 'in cohort' || node.operator === 'not in cohort');

function* cohortsIn(value: unknown, attr: string): Generator<ReturnType<typeof cohortsOf>[number]> {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* cohortsIn(item, `${attr}__${index}`);
    return;
  }
  if (isFilter(value)) yield* isOfCohort(value) ? cohortsOf(value, attr) : [];
  else
    for (const [name, inner] of Object.entries(value))
      if (containers.has(name) || (name === 'values' && Array.isArray(inner)))
        yield* cohortsIn(inner, `${attr}__${name}`);
}

/** Whether a part of a parsed query is a property filter, rather than a group of filters or a node. */
const isFilter = (part: object): part is PropertyFilter & { readonly value?: FilterScalar } =>
  'type' in part && !('values' in part);
