import fc, { type Arbitrary } from 'fast-check';
import {
  alias,
  anyVocabulary,
  comparison,
  joinWords,
  literal,
  setWords,
  space,
  type,
  unit,
  type Vocabulary,
  words,
} from './grammar_words.ts';

/** Texts of the parts of the grammar. */
export type GrammarTexts = {
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
const maybe = (part: Arbitrary<string>): Arbitrary<string> => fc.option(part, { nil: '', freq: 2 });
const clause = (word: string, part: Arbitrary<string>): Arbitrary<string> => maybe(spaced(text(word), part));
const list = (item: Arbitrary<string>, most = 3): Arbitrary<string> =>
  fc.array(item, { minLength: 1, maxLength: most }).map((items) => items.join(', '));
const around = (open: string, inner: Arbitrary<string>, close: string): Arbitrary<string> =>
  inner.map((part) => `${open}${part}${close}`);

/** Generators of texts that the grammar knows; all of them parse. `depth` bounds their size. */
export function grammar(
  vocabulary: Vocabulary = anyVocabulary,
  maxDepth = 4,
): { [Part in keyof GrammarTexts]: Arbitrary<string> } {
  const field = words(...vocabulary.fields);
  const functionName = words(...vocabulary.functions);
  return fc.letrec<GrammarTexts>((tie) => {
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
    const plainCall = fc.tuple(functionName, around('(', callArguments, ')')).map((parts) => parts.join(''));
    const call = fc.oneof(
      { weight: 4, arbitrary: plainCall },
      fc
        .tuple(text('quantile'), around('(', list(atom), ')'), around('(', item, ')'))
        .map((parts) => parts.join('')),
      spaced(plainCall, around('FILTER (WHERE ', expression, ')')),
      spaced(
        plainCall,
        maybe(words('IGNORE NULLS', 'RESPECT NULLS')),
        text('OVER'),
        fc.oneof(window, text('w')),
      ),
    );
    const bracketed = around('(', item, ')');
    const when = fc.array(spaced(text('WHEN'), expression, text('THEN'), expression), {
      minLength: 1,
      maxLength: 2,
    });
    const special = fc.oneof(
      spaced(text('CASE'), maybe(atom), when.map(join), clause('ELSE', expression), text('END')),
      fc
        .tuple(words('CAST', 'try_cast'), expression, type)
        .map(([word, operand, name]) => `${word}(${operand} AS ${name})`),
      fc.tuple(unit, expression).map(([name, operand]) => `EXTRACT(${name} FROM ${operand})`),
      fc.tuple(expression, atom).map(([operand, from]) => `SUBSTRING(${operand} FROM ${from} FOR 2)`),
      fc
        .tuple(words('BOTH', 'leading', 'TRAILING'), maybe(atom), atom)
        .map(([side, what, operand]) => `TRIM(${side} ${what} FROM ${operand})`),
      spaced(text('INTERVAL'), bracketed, unit),
      fc
        .tuple(atom, expression)
        .map(([before, value]) => `f'${before.replaceAll(/['\\{}"`]/g, '')} {${value}} it\\'s'`),
      around('[', fc.oneof(text(''), list(item)), ']'),
      around(
        '(',
        fc.tuple(item, list(item)).map((parts) => parts.join(', ')),
        ')',
      ),
      around('(', item, ',)'),
      around('{', words('filters', 'variables.code_name', 'filters.dateRange.from', 'name'), '}'),
      fc.tuple(atom, expression).map(([key, value]) => `{${key}: ${value}, 'b': {}}`),
      around('(', query, ')'),
    );
    const postfixed = fc
      .tuple(
        bracketed,
        words(
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
        .tuple(atom, words('+', '-', '*', '/', '%', '||'), space, expression)
        .map(([left, operator, gap, right]) => `${left} ${operator}${gap}${right}`),
      fc
        .tuple(expression, words('??', 'AND', 'or'), space, expression)
        .map(([left, operator, gap, right]) => `${left} ${operator}${gap}${right}`),
      spaced(expression, comparison, expression),
      spaced(words('NOT', '- '), expression),
      spaced(expression, words('IS NULL', 'IS NOT NULL')),
      spaced(expression, words('BETWEEN', 'NOT BETWEEN'), atom, text('AND'), atom),
      spaced(expression, text('?'), expression, text(':'), expression),
    );
    const table = fc.oneof(
      spaced(
        words(...vocabulary.tables),
        maybe(words('FINAL', 'SAMPLE 1/10', 'SAMPLE 0.1 OFFSET 1/2')),
        maybe(words('AS e', 'e', 'final_one')),
      ),
      spaced(around('(', query, ')'), maybe(words('AS q', 'q'))),
      text('numbers(10) AS n'),
    );
    const constraint = fc.oneof(spaced(text('ON'), expression), words('USING (id)', 'USING (id, key)'));
    const limit = words(
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
      spaced(text('ALL'), maybe(text('WITH TOTALS'))),
      spaced(list(item), maybe(words('WITH ROLLUP', 'WITH CUBE')), maybe(text('WITH TOTALS'))),
      fc.tuple(words('ROLLUP', 'cube'), list(item)).map(([word, items]) => `${word}(${items})`),
      fc.tuple(item, item).map(([first, second]) => `GROUPING SETS ((${first}), (), (${second}, 1))`),
    );
    const cte = fc.oneof(
      fc.tuple(text('c'), query).map(([name, inner]) => `${name} AS (${inner})`),
      spaced(expression, text('AS c2')),
    );
    const column = fc.oneof(
      { weight: 4, arbitrary: item },
      spaced(atom, words('c', 'browser', '"x y"')),
      words(
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
        bracketed,
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
        maybe(words('ASC', 'DESC', 'descending')),
        maybe(words('NULLS FIRST', 'nulls last')),
        maybe(words('WITH FILL', 'WITH FILL FROM 1 TO 10 STEP 2')),
      ),
      window: around(
        '(',
        spaced(
          maybe(text('w')),
          clause('PARTITION BY', list(expression)),
          clause('ORDER BY', list(orderItem)),
          maybe(
            words(
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
        spaced(tie('from'), joinWords, table, constraint),
        spaced(tie('from'), words(', ', 'CROSS JOIN'), table),
        spaced(table, text('JOIN'), around('(', tie('from'), ')'), constraint),
      ),
      select: spaced(
        clause('WITH', list(cte, 2)),
        words('SELECT', 'select', 'SELECT DISTINCT', 'SELECT DISTINCT ON (a, b)'),
        list(column),
        maybe(
          spaced(
            text('FROM'),
            tie('from'),
            maybe(spaced(words('ARRAY JOIN', 'LEFT ARRAY JOIN', 'INNER ARRAY JOIN'), list(item))),
            clause('PREWHERE', expression),
            clause('WHERE', expression),
            clause('GROUP BY', groupBy),
            clause('HAVING', expression),
            clause('QUALIFY', expression),
            maybe(spaced(text('WINDOW w AS'), window)),
            clause('ORDER BY', list(orderItem)),
            maybe(words('LIMIT 1 BY a', 'LIMIT 2 OFFSET 1 BY a, b', 'LIMIT 1, 2 BY b')),
            maybe(limit),
          ),
        ),
      ),
      query: fc.oneof(
        { maxDepth, withCrossShrink: true },
        tie('select'),
        tie('select'),
        spaced(
          around('(', tie('select'), ')'),
          setWords,
          around('(', query, ')'),
          clause('ORDER BY', list(orderItem)),
          maybe(limit),
        ),
        spaced(tie('select'), setWords, tie('select'), setWords, around('(', query, ')')),
      ),
    };
  });
}
