import type { Expression } from '../../dialect/ast.ts';
import { tableNamed } from '../../dialect/build.ts';
import type { DialectReader } from '../dialect_reader.ts';
import { checkFilters, checkTestAccounts } from '../filters/check_filters.ts';
import { QueryInvalid } from '../query_errors.ts';
import type { QueryProject } from '../query_kind.ts';
import { brokenDownBy } from '../breakdowns/broken_down_by.ts';
import { breakdownsOf } from '../breakdowns/schema.ts';
import { measureOf } from './measures.ts';
import type { TrendsQuery } from './schema.ts';
import { selecting } from './selects.ts';

/**
 * Compiles the expressions of a query by themselves, so that a refusal names their member and not a statement of
 * exportd's own. @throws QueryInvalid
 */
export function checkExpressions(query: TrendsQuery, project: QueryProject, reader: DialectReader): void {
  checkFilters(query.properties, 'query__properties', reader);
  if (query.filterTestAccounts) checkTestAccounts(project, reader);
  const kindOf = (expression: Expression, attr: string): string | undefined => {
    const alone = selecting({ value: expression }, { from: tableNamed('events') });
    return reader.compile(alone, { attr }).columns[0]?.type.kind;
  };
  for (const breakdown of breakdownsOf(query.breakdownFilter))
    kindOf(brokenDownBy(breakdown), breakdown.attr);
  for (const [index, series] of query.series.entries()) {
    if (series.kind !== 'EventsNode') continue;
    const attr = `query__series__${index}`;
    checkFilters(series.properties, `${attr}__properties`, reader);
    checkFilters(series.fixedProperties, `${attr}__fixedProperties`, reader);
    const measure = measureOf(series, attr);
    if (measure.form !== 'whole') {
      if (measure.direct !== null) kindOf(measure.direct, `${attr}__math_property`);
      continue;
    }
    const path = `${attr}__math_hogql`;
    const kind = kindOf(measure.direct, path) ?? 'null';
    if (!['integer', 'float', 'decimal', 'boolean', 'null'].includes(kind))
      throw new QueryInvalid(
        'invalid_input',
        'The expression has to give a number, such as sum(toFloat(properties.price)).',
        {
          attr: path,
        },
      );
  }
}
