import { QueryError } from '../query_errors.ts';
import { FormulaError, parseFormula, type Formula } from './formula.ts';
import { sortedLines, type Line } from './lines.ts';
import type { TrendsQuery } from './schema.ts';

/** A formula of a query and the label of its lines. */
export interface NamedFormula extends Formula {
  readonly label: string;
}

/** The formulas of a query, from any of the three fields. @throws QueryError */
export function formulasOf({ trendsFilter, series }: TrendsQuery): readonly NamedFormula[] {
  const path = 'query__trendsFilter';
  const { formula, formulas, formulaNodes } = trendsFilter ?? {};
  const written = formulaNodes?.length
    ? formulaNodes.map((node, index) => ({ ...node, attr: `${path}__formulaNodes__${index}__formula` }))
    : formulas?.length
      ? formulas.map((text, index) => ({
          formula: text,
          custom_name: null,
          attr: `${path}__formulas__${index}`,
        }))
      : [{ formula: formula ?? '', custom_name: null, attr: `${path}__formula` }];
  return written
    .filter((one) => one.formula.trim() !== '')
    .map((one) => ({
      ...readFormula(one.formula, series.length, one.attr),
      label: one.custom_name ?? `Formula (${one.formula})`,
    }));
}

function readFormula(text: string, count: number, attr: string): Formula {
  const invalid = (message: string): QueryError => new QueryError('invalid_input', message, { attr });
  let formula: Formula;
  try {
    formula = parseFormula(text);
  } catch (error) {
    if (!(error instanceof FormulaError)) throw error;
    throw invalid(`${error.message} (character ${error.offset + 1} of the formula)`);
  }
  const missing = formula.series.find((index) => index >= count);
  if (missing === undefined) return formula;
  const letter = String.fromCharCode(65 + missing);
  throw invalid(
    `The formula uses series ${letter}, but the query has ${count === 1 ? 'only A' : `only A to ${String.fromCharCode(64 + count)}`}.`,
  );
}

/**
 * The lines of a formula: one for each breakdown value of any of its series. A series without that value is 0.
 * @param length of each line
 * @param totalOf the value that lines are sorted by
 */
export function formulaLines(
  { series, evaluate }: Formula,
  linesBySeries: readonly (readonly Line[])[],
  length: number,
  totalOf: (data: readonly number[]) => number,
): readonly Line[] {
  const used = series.length === 0 ? linesBySeries.map((_, index) => index) : series;
  const byValues = new Map<string, Map<number, Line>>();
  for (const index of used)
    for (const line of linesBySeries[index] ?? []) {
      const key = JSON.stringify(line.values);
      const lines = byValues.get(key) ?? new Map<number, Line>();
      byValues.set(key, lines.set(index, line));
    }
  const lines = [...byValues.values()].map((bySeries): Line => {
    const values = [...bySeries.values()][0]?.values ?? [];
    const data = Array.from({ length }, (_, point) =>
      evaluate((index) => bySeries.get(index)?.data[point] ?? 0),
    );
    return { values, data };
  });
  return sortedLines(lines, totalOf);
}
