import type { Select } from '../../../dialect/ast.ts';
import {
  buildDerivedTable,
  buildExpression,
  buildField,
  buildLiteral,
  buildAlias,
  withFrom,
  buildSelect,
} from '../../../dialect/ast_builders.ts';
import type { Draft } from '../draft.ts';
import { unclear } from '../unclear.ts';
import { conjunction } from './conjunction.ts';
import { eventsCondition, filterCondition } from './filters.ts';
import { queryTableOf } from './query_table.ts';
import { periodCondition } from './times.ts';

/** The conversion window in seconds: 14 days, the default of funnels. */
const windowSeconds = 14 * 24 * 60 * 60;

/** The condition on events with these names and a known person. */
export const peopleCondition = (draft: Draft, events: readonly string[]) => {
  const table = queryTableOf(draft);
  return conjunction([
    eventsCondition(events),
    draft.period && periodCondition(draft.period, table.time),
    ...draft.filters.map((filter) => filterCondition(filter, table)),
    buildExpression('person_id is not null'),
  ]);
};

/** Requires a draft without grouping, comparison or measures. @throws QueryError `unclear` */
export function requireUngrouped(draft: Draft): void {
  if (
    draft.bucket !== null ||
    draft.breakdowns.length > 0 ||
    draft.compared !== null ||
    draft.measures.length > 0
  )
    throw unclear(
      'Conversions cannot be grouped or compared in a draft. Remove the grouping, or use a FunnelsQuery.',
    );
}

/** Counts how many people did several events in sequence. */
export function conversionQuery(draft: Draft): Select {
  requireUngrouped(draft);
  const { steps } = draft;
  const matches = steps.map((step) => eventsCondition([step]) ?? buildLiteral(true));
  const reached = buildExpression(
    `windowFunnel(${windowSeconds})({time}, ${matches.map((_, index) => `{step_${index}}`).join(', ')})`,
    {
      time: buildField('timestamp'),
      ...Object.fromEntries(matches.map((match, index) => [`step_${index}`, match])),
    },
  );
  const persons: Select = {
    ...buildSelect('select person_id from events group by person_id'),
    columns: [buildField('person_id'), buildAlias(reached, 'steps')],
    where: peopleCondition(draft, [...new Set(steps)]),
  };
  const counts = steps.map((_, index) => `countIf(steps >= ${index + 1}) as step_${index + 1}`);
  const rate = `round(100 * countIf(steps >= ${steps.length}) / nullIf(countIf(steps >= 1), 0), 2) as conversion_rate`;
  return withFrom(
    buildSelect(`select ${counts.join(', ')}, ${rate} from events`),
    buildDerivedTable(persons, 'persons'),
  );
}
