import type { z } from 'zod';
import { QueryError } from '../query_errors.ts';
import type { FiltersOverride } from '../query_kind.ts';
import { filtersCondition } from './condition.ts';
import type { FilterTarget } from './filter_target.ts';
import {
  maxLevels,
  propertyFilterListSchema,
  propertyFiltersSchema,
  type PropertyFilters,
} from './schema.ts';

const attr = 'filters_override__properties';

/**
 * A query's own property filters combined with those of a dashboard; all must match.
 * @param scope the rows that are filtered
 * @throws QueryError with the path of the invalid dashboard filter
 */
export function withOverride(
  own: PropertyFilters | null | undefined,
  more: FiltersOverride['properties'],
  scope: FilterTarget['scope'] = 'events',
): PropertyFilters | null {
  if (!more?.length) return own ?? null;
  const read = propertyFilterListSchema.safeParse(more);
  if (!read.success) throw invalidFilter(read.error);
  filtersCondition(read.data, { scope, attr: attr });
  if (own === null || own === undefined) return read.data;
  if (!('type' in own)) return [...own, ...read.data];
  const values = own.type === 'AND' ? own.values : [own];
  const joined = propertyFiltersSchema.safeParse({ type: 'AND', values: [...values, ...read.data] });
  if (joined.success) return joined.data;
  throw new QueryError(
    'invalid_input',
    `The property filters of this query are already nested ${maxLevels} levels deep, the maximum, so that none can be added.`,
    { attr: attr },
  );
}

function invalidFilter({ issues }: z.ZodError): QueryError {
  const [issue] = issues;
  const path = [attr, ...(issue?.path ?? [])].join('__');
  return new QueryError(
    'invalid_input',
    `This is not a valid property filter: ${issue?.message ?? 'unknown format'}.`,
    {
      attr: path,
    },
  );
}
