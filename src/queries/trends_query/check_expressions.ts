import type { Expression } from '@exportd/dialect/ast';
import { buildExpression, buildTable } from '@exportd/dialect/ast_builders';
import type { DialectReader } from '../dialect_reader.ts';
import { QueryError } from '../query_errors.ts';
import { seriesCondition } from '../nodes.ts';
import { breakdownExpression, breakdownsOf } from '../breakdowns.ts';
import { checkFilters, checkTestAccounts } from '../property_filters.ts';
import type { QueryProject } from '../query_kind.ts';
import { measureOf } from './measure.ts';
import { buildNamedSelect } from './named_select.ts';
import type { TrendsQuery } from './schema.ts';
import { attrOf } from './series.ts';

/**
 * Compiles each expression of a query separately, so that an error names its field rather than a generated statement.
 * @throws QueryError
 */
export function checkExpressions(query: TrendsQuery, project: QueryProject, reader: DialectReader): void {
  checkFilters(query.properties, 'query__properties', reader);
  if (query.filterTestAccounts) checkTestAccounts(project, reader);
  const kindOf = (expression: Expression, attr: string): string | undefined => {
    const alone = buildNamedSelect({ value: expression }, { from: buildTable('events') });
    return reader.compile(alone, { attr }).columns[0]?.type.kind;
  };
  /** A negated property has a type that may be inferred. */
  const isNumber = (expression: Expression, attr: string): boolean => {
    const kind = kindOf(expression, attr) ?? 'null';
    if (['integer', 'float', 'decimal', 'boolean', 'null'].includes(kind)) return true;
    try {
      kindOf(buildExpression('-{expression}', { expression }), attr);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
    }
    return false;
  };
  for (const breakdown of breakdownsOf(query.breakdownFilter))
    kindOf(breakdownExpression(breakdown), breakdown.attr);
  for (const [index, series] of query.series.entries()) {
    const attr = attrOf({ index });
    seriesCondition(series, attr, project);
    checkFilters(series.properties, `${attr}__properties`, reader);
    checkFilters(series.fixedProperties, `${attr}__fixedProperties`, reader);
    const measure = measureOf(series, attr);
    if (measure.form !== 'whole') {
      if (measure.direct !== null) kindOf(measure.direct, `${attr}__math_property`);
      continue;
    }
    const path = `${attr}__math_hogql`;
    if (!isNumber(measure.direct, path))
      throw new QueryError(
        'invalid_input',
        'The expression must return a number, such as sum(toFloat(properties.price)).',
        {
          attr: path,
        },
      );
  }
}
