import { QueryError } from '../query_errors.ts';
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

/** A parsed formula over the values of its series at one point. */
export interface Formula {
  /** Indexes of the series that it reads, from 0. */
  readonly series: readonly number[];
  /** Division by zero and overflow return 0. */
  readonly evaluate: (valueOf: (series: number) => number) => number;
}

/** A syntax error in a formula. The offset is from the start of its text. */
class FormulaError extends Error {
  override readonly name = 'FormulaError';
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

/** Parses a formula such as `(A + B) / 2`. @throws FormulaError */
export function parseFormula(text: string): Formula {
  const parser = new FormulaParser(text);
  const value = parser.whole();
  return { series: [...parser.series], evaluate: (valueOf) => finite(value(valueOf)) };
}

/**
 * Parses arithmetic over letters and numbers, such as `A / (A + B) * 100`. Separate from the dialect's parser, which
 * has no `**`; here it binds tighter than a preceding sign.
 */
class FormulaParser {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  readonly series = new Set<number>();
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = tokensOf(text);
  }

  whole(): Evaluator {
    const value = this.#sum();
    const rest = this.#tokens[this.#at];
    if (rest !== undefined)
      throw new FormulaError(`Expected an operator before \`${rest.text}\`.`, rest.offset);
    return value;
  }

  #chain(operators: readonly string[], operand: () => Evaluator): Evaluator {
    let value = operand();
    for (;;) {
      const operation = operations[this.#take(operators) ?? ''];
      if (operation === undefined) return value;
      const [left, right] = [value, operand()];
      value = (valueOf) => operation(left(valueOf), right(valueOf));
    }
  }

  #sum(): Evaluator {
    return this.#chain(['+', '-'], () => this.#chain(['*', '/', '%'], () => this.#signed()));
  }

  #signed(): Evaluator {
    const sign = this.#take(['-', '+']);
    if (sign === undefined) return this.#power();
    const value = this.#signed();
    return sign === '-' ? (valueOf) => -value(valueOf) : value;
  }

  /** Right-associative: `2 ** 3 ** 2` is 512. */
  #power(): Evaluator {
    const base = this.#atom();
    const operation = operations[this.#take(['**']) ?? ''];
    if (operation === undefined) return base;
    const exponent = this.#signed();
    return (valueOf) => operation(base(valueOf), exponent(valueOf));
  }

  #atom(): Evaluator {
    const token = this.#tokens[this.#at];
    if (token === undefined) throw new FormulaError('The formula is incomplete.', this.#text.length);
    this.#at += 1;
    if (token.text === '(') {
      const inner = this.#sum();
      if (this.#take([')']) === undefined)
        throw new FormulaError('A parenthesis is not closed.', token.offset);
      return inner;
    }
    if (/^[\d.]/.test(token.text)) {
      const number = finite(Number(token.text));
      return () => number;
    }
    if (/^[a-z]$/i.test(token.text)) {
      const series = token.text.toUpperCase().charCodeAt(0) - 65;
      this.series.add(series);
      return (valueOf) => valueOf(series);
    }
    throw new FormulaError(
      /^[a-z]/i.test(token.text)
        ? `\`${token.text}\` is not a series. Series are single letters, A for the first.`
        : `Expected a series or a number before \`${token.text}\`.`,
      token.offset,
    );
  }

  #take(operators: readonly string[]): string | undefined {
    const found = this.#tokens[this.#at]?.text;
    if (found === undefined || !operators.includes(found)) return undefined;
    this.#at += 1;
    return found;
  }
}

type Evaluator = (valueOf: (series: number) => number) => number;

interface Token {
  readonly text: string;
  readonly offset: number;
}

const tokenPattern = /\s*(\*\*|[-+*/%()]|\d+(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|[a-z]+)/iy;

/** Limits the depth of recursion. */
const maxTokens = 1_000;

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  tokenPattern.lastIndex = 0;
  let end = 0;
  while (text.slice(end).trim() !== '') {
    const match = tokenPattern.exec(text);
    const found = match?.[1];
    if (found === undefined) {
      const offset = end + (text.slice(end).length - text.slice(end).trimStart().length);
      throw new FormulaError(`\`${text.charAt(offset)}\` is not allowed in a formula.`, offset);
    }
    end = tokenPattern.lastIndex;
    tokens.push({ text: found, offset: end - found.length });
    if (tokens.length > maxTokens) throw new FormulaError('The formula is too long.', end);
  }
  return tokens;
}

const finite = (value: number): number => (Number.isFinite(value) ? value : 0);

const operations: Readonly<Record<string, (left: number, right: number) => number>> = {
  '+': (left, right) => left + right,
  '-': (left, right) => left - right,
  '*': (left, right) => left * right,
  '/': (left, right) => finite(left / right),
  '%': (left, right) => finite(left % right),
  '**': (left, right) => finite(left ** right),
};
