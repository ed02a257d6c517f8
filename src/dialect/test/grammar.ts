import fc, { type Arbitrary } from 'fast-check';
import {
  alias,
  anyVocabulary,
  comparison,
  joinKeywords,
  literal,
  setOperators,
  whitespace,
  type,
  unit,
  type Vocabulary,
  oneOf,
} from './grammar_terminals.ts';

/** The texts that each grammar rule generates. */
type GrammarRules = {
  readonly query: string;
  readonly expression: string;
  readonly select: string;
  readonly from: string;
  readonly atom: string;
  readonly item: string;
  readonly orderItem: string;
  readonly window: string;
};

const join = (parts: readonly string[]): string => parts.filter((part) => part !== '').join(' ');
const spaced = (...parts: readonly Arbitrary<string>[]): Arbitrary<string> => fc.tuple(...parts).map(join);
const text = (constant: string): Arbitrary<string> => fc.constant(constant);
const optional = (part: Arbitrary<string>): Arbitrary<string> => fc.option(part, { nil: '', freq: 2 });
const clause = (word: string, part: Arbitrary<string>): Arbitrary<string> =>
  optional(spaced(text(word), part));
const list = (item: Arbitrary<string>, max = 3): Arbitrary<string> =>
  fc.array(item, { minLength: 1, maxLength: max }).map((items) => items.join(', '));
const enclosed = (open: string, inner: Arbitrary<string>, close: string): Arbitrary<string> =>
  inner.map((part) => `${open}${part}${close}`);

/** Generates texts that conform to the grammar. `maxDepth` bounds their size. */
export function grammar(
  vocabulary: Vocabulary = anyVocabulary,
  maxDepth = 4,
): { [Part in keyof GrammarRules]: Arbitrary<string> } {
  const field = oneOf(...vocabulary.fields);
  const functionName = oneOf(...vocabulary.functions);
  return fc.letrec<GrammarRules>((tie) => {
    const expression = tie('expression');
    const atom = tie('atom');
    const item = tie('item');
    const orderItem = tie('orderItem');
    const query = tie('query');
    const window = tie('window');
    const lambda = fc.oneof(
      spaced(text('x ->'), expression),
      spaced(text('(x, y) ->'), expression),
      spaced(text('() ->'), expression),
    );
    const callArguments = fc.oneof(
      text(''),
      list(item),
      text('*'),
      spaced(text('DISTINCT'), list(item)),
      spaced(item, text('ORDER BY'), orderItem),
      fc.tuple(lambda, list(item)).map((parts) => parts.join(', ')),
      tie('select'),
    );
    const plainCall = fc
      .tuple(functionName, enclosed('(', callArguments, ')'))
      .map((parts) => parts.join(''));
    const call = fc.oneof(
      { weight: 4, arbitrary: plainCall },
      fc
        .tuple(text('quantile'), enclosed('(', list(atom), ')'), enclosed('(', item, ')'))
        .map((parts) => parts.join('')),
      spaced(plainCall, enclosed('FILTER (WHERE ', expression, ')')),
      spaced(
        plainCall,
        optional(oneOf('IGNORE NULLS', 'RESPECT NULLS')),
        text('OVER'),
        fc.oneof(window, text('w')),
      ),
    );
    const parenthesized = enclosed('(', item, ')');
    const when = fc.array(spaced(text('WHEN'), expression, text('THEN'), expression), {
      minLength: 1,
      maxLength: 2,
    });
    const special = fc.oneof(
      spaced(text('CASE'), optional(atom), when.map(join), clause('ELSE', expression), text('END')),
      fc
        .tuple(oneOf('CAST', 'try_cast'), expression, type)
        .map(([word, operand, name]) => `${word}(${operand} AS ${name})`),
      fc.tuple(unit, expression).map(([name, operand]) => `EXTRACT(${name} FROM ${operand})`),
      fc.tuple(expression, atom).map(([operand, from]) => `SUBSTRING(${operand} FROM ${from} FOR 2)`),
      fc
        .tuple(oneOf('BOTH', 'leading', 'TRAILING'), optional(atom), atom)
        .map(([side, what, operand]) => `TRIM(${side} ${what} FROM ${operand})`),
      spaced(text('INTERVAL'), parenthesized, unit),
      fc
        .tuple(atom, expression)
        .map(([before, value]) => `f'${before.replaceAll(/['\\{}"`]/g, '')} {${value}} it\\'s'`),
      enclosed('[', fc.oneof(text(''), list(item)), ']'),
      enclosed(
        '(',
        fc.tuple(item, list(item)).map((parts) => parts.join(', ')),
        ')',
      ),
      enclosed('(', item, ',)'),
      enclosed('{', oneOf('filters', 'variables.code_name', 'filters.dateRange.from', 'name'), '}'),
      fc.tuple(atom, expression).map(([key, value]) => `{${key}: ${value}, 'b': {}}`),
      enclosed('(', query, ')'),
    );
    const postfixed = fc
      .tuple(
        parenthesized,
        oneOf(
          '.name',
          '.1',
          '?.name',
          '?.[1]',
          "['a b']",
          '[-1]',
          '[1:2]',
          '[:2]',
          '[1:]',
          '::Int64',
          '.`a b`',
        ),
      )
      .map((parts) => parts.join(''));
    const operation = fc.oneof(
      fc
        .tuple(atom, oneOf('+', '-', '*', '/', '%', '||'), whitespace, expression)
        .map(([left, operator, gap, right]) => `${left} ${operator}${gap}${right}`),
      fc
        .tuple(expression, oneOf('??', 'AND', 'or'), whitespace, expression)
        .map(([left, operator, gap, right]) => `${left} ${operator}${gap}${right}`),
      spaced(expression, comparison, expression),
      spaced(oneOf('NOT', '- '), expression),
      spaced(expression, oneOf('IS NULL', 'IS NOT NULL')),
      spaced(expression, oneOf('BETWEEN', 'NOT BETWEEN'), atom, text('AND'), atom),
      spaced(expression, text('?'), expression, text(':'), expression),
    );
    const table = fc.oneof(
      spaced(
        oneOf(...vocabulary.tables),
        optional(oneOf('FINAL', 'SAMPLE 1/10', 'SAMPLE 0.1 OFFSET 1/2')),
        optional(oneOf('AS e', 'e', 'final_one')),
      ),
      spaced(enclosed('(', query, ')'), optional(oneOf('AS q', 'q'))),
      text('numbers(10) AS n'),
    );
    const constraint = fc.oneof(spaced(text('ON'), expression), oneOf('USING (id)', 'USING (id, key)'));
    const limit = oneOf(
      'LIMIT 10',
      'LIMIT 5, 10',
      'LIMIT 10 OFFSET 5',
      'OFFSET 3',
      'LIMIT 10 WITH TIES',
      'limit {variables.n}',
      'LIMIT 1 WITH TIES OFFSET 2',
      'LIMIT 2.5 PERCENT',
      'LIMIT 5, 0.1 WITH TIES',
      'limit 10 percent with ties offset 1/4',
    );
    const groupBy = fc.oneof(
      spaced(text('ALL'), optional(text('WITH TOTALS'))),
      spaced(list(item), optional(oneOf('WITH ROLLUP', 'WITH CUBE')), optional(text('WITH TOTALS'))),
      fc.tuple(oneOf('ROLLUP', 'cube'), list(item)).map(([word, items]) => `${word}(${items})`),
      fc.tuple(item, item).map(([first, second]) => `GROUPING SETS ((${first}), (), (${second}, 1))`),
    );
    const cte = fc.oneof(
      fc.tuple(text('c'), query).map(([name, inner]) => `${name} AS (${inner})`),
      spaced(expression, text('AS c2')),
    );
    const column = fc.oneof(
      { weight: 4, arbitrary: item },
      spaced(atom, oneOf('c', 'browser', '"x y"')),
      oneOf(
        '*',
        'e.*',
        '* EXCLUDE (a, b)',
        '* EXCEPT (a)',
        '* REPLACE (1 AS a)',
        "COLUMNS('^a')",
        'COLUMNS(a, b)',
        'columns(*)',
      ),
    );
    return {
      atom: fc.oneof(
        { maxDepth, withCrossShrink: true },
        literal,
        field,
        parenthesized,
        call,
        postfixed,
        special,
      ),
      expression: fc.oneof({ maxDepth, withCrossShrink: true }, field, literal, atom, operation, operation),
      item: fc.oneof(
        { maxDepth, withCrossShrink: true },
        field,
        expression,
        spaced(expression, text('AS'), alias),
      ),
      orderItem: spaced(
        expression,
        optional(oneOf('ASC', 'DESC', 'descending')),
        optional(oneOf('NULLS FIRST', 'nulls last')),
        optional(oneOf('WITH FILL', 'WITH FILL FROM 1 TO 10 STEP 2')),
      ),
      window: enclosed(
        '(',
        spaced(
          optional(text('w')),
          clause('PARTITION BY', list(expression)),
          clause('ORDER BY', list(orderItem)),
          optional(
            oneOf(
              'ROWS UNBOUNDED PRECEDING',
              'ROWS BETWEEN 1 PRECEDING AND CURRENT ROW',
              'RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND UNBOUNDED FOLLOWING',
              'groups current row',
            ),
          ),
        ),
        ')',
      ),
      from: fc.oneof(
        { maxDepth, withCrossShrink: true },
        table,
        table,
        spaced(tie('from'), joinKeywords, table, constraint),
        spaced(tie('from'), oneOf(', ', 'CROSS JOIN'), table),
        spaced(table, text('JOIN'), enclosed('(', tie('from'), ')'), constraint),
      ),
      select: spaced(
        clause('WITH', list(cte, 2)),
        oneOf('SELECT', 'select', 'SELECT DISTINCT', 'SELECT DISTINCT ON (a, b)'),
        list(column),
        optional(
          spaced(
            text('FROM'),
            tie('from'),
            optional(spaced(oneOf('ARRAY JOIN', 'LEFT ARRAY JOIN', 'INNER ARRAY JOIN'), list(item))),
            clause('PREWHERE', expression),
            clause('WHERE', expression),
            clause('GROUP BY', groupBy),
            clause('HAVING', expression),
            clause('QUALIFY', expression),
            optional(spaced(text('WINDOW w AS'), window)),
            clause('ORDER BY', list(orderItem)),
            optional(oneOf('LIMIT 1 BY a', 'LIMIT 2 OFFSET 1 BY a, b', 'LIMIT 1, 2 BY b')),
            optional(limit),
          ),
        ),
      ),
      query: fc.oneof(
        { maxDepth, withCrossShrink: true },
        tie('select'),
        tie('select'),
        spaced(
          enclosed('(', tie('select'), ')'),
          setOperators,
          enclosed('(', query, ')'),
          clause('ORDER BY', list(orderItem)),
          optional(limit),
        ),
        spaced(tie('select'), setOperators, tie('select'), setOperators, enclosed('(', query, ')')),
      ),
    };
  });
}
