/** A position in a query text, both counted from 1. A column is one character, as in an editor. */
interface LineAndColumn {
  readonly line: number;
  readonly column: number;
}

/** In characters. */
const maxExcerptWidth = 100;

/** A query text with the line positions that errors need. */
export class QueryText {
  readonly text: string;
  #lineStarts: number[] | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /** The line and column of an offset in UTF-16 code units. Offsets after the end count as the end. */
  lineAndColumnOf(offset: number): LineAndColumn {
    const starts = this.#starts();
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    const before = this.text.slice(starts[low] ?? 0, offset);
    return { line: low + 1, column: codePointsOf(before).length + 1 };
  }

  /** The line at an offset, truncated to a readable width, and a line of carets under `length` code units. */
  excerptAt(offset: number, length: number): string {
    const { line } = this.lineAndColumnOf(offset);
    const start = this.#starts()[line - 1] ?? 0;
    const next = this.#starts()[line];
    const whole = this.text.slice(start, next).replace(/\r?\n$|\r$/, '');
    const before = codePointsOf(whole.slice(0, offset - start));
    const caretCount = Math.max(1, codePointsOf(whole.slice(offset - start, offset - start + length)).length);
    const all = codePointsOf(whole);
    const from = all.length <= maxExcerptWidth ? 0 : Math.max(0, before.length - maxExcerptWidth / 2);
    const excerpt = all.slice(from, from + maxExcerptWidth);
    const head = from > 0 ? '…' : '';
    const tail = from + maxExcerptWidth < all.length ? '…' : '';
    const indent = before.slice(from).map((character) => (character === '\t' ? '\t' : ' '));
    const carets = '^'.repeat(Math.min(caretCount, Math.max(1, excerpt.length - indent.length)));
    return `${head}${excerpt.join('')}${tail}\n${head === '' ? '' : ' '}${indent.join('')}${carets}`;
  }

  #starts(): readonly number[] {
    if (this.#lineStarts !== undefined) return this.#lineStarts;
    const starts = [0];
    for (const match of this.text.matchAll(/\r\n|\n|\r/g)) starts.push(match.index + match[0].length);
    this.#lineStarts = starts;
    return starts;
  }
}

/** Splits into code points, so that carets line up. */
const codePointsOf = (text: string): string[] => Array.from(text);

/** Where a query is wrong and what to write instead. */
interface DialectErrorDetails {
  /** Offset of the first wrong code unit. */
  readonly start: number;
  /** Offset after the last one. Equal to `start` at the end of the text. */
  readonly end: number;
  /** What to write instead, as a sentence. */
  readonly suggestion?: string | null;
}

/**
 * A query that the dialect rejects. The message contains all a user needs: the summary, the suggestion, and the line
 * with carets under the error.
 */
export class DialectError extends Error {
  override readonly name = 'DialectError';
  /** The message without suggestion and excerpt. */
  readonly summary: string;
  readonly suggestion: string | null;
  /** From 1. */
  readonly line: number;
  /** From 1, in characters. */
  readonly column: number;
  /** Offset in the query text, in UTF-16 code units. */
  readonly offset: number;
  /** Number of wrong code units; 0 at the end of the text. */
  readonly length: number;
  /** The wrong line and a line of carets. */
  readonly excerpt: string;

  constructor(queryText: QueryText, summary: string, details: DialectErrorDetails) {
    const { line, column } = queryText.lineAndColumnOf(details.start);
    const length = details.end - details.start;
    const excerpt = queryText.excerptAt(details.start, length);
    const suggestion = details.suggestion ?? null;
    const words = suggestion === null ? summary : `${summary} ${suggestion}`;
    super(`${words} (line ${line}, column ${column})\n${excerpt}`);
    this.summary = summary;
    this.suggestion = suggestion;
    this.line = line;
    this.column = column;
    this.offset = details.start;
    this.length = length;
    this.excerpt = excerpt;
  }
}

/**
 * The known name most similar to `name`, or null if none is close. At most one letter in three may differ, be
 * missing, be extra or be swapped with its neighbor. Case is ignored.
 */
export function nearestName(name: string, known: Iterable<string>): string | null {
  const lowerCaseName = name.toLowerCase();
  // Bounds the work: very long names are never typos of known ones.
  if (lowerCaseName.length > 64) return null;
  let best: string | null = null;
  const maxDistance = Math.floor(lowerCaseName.length / 3);
  let bestDistance = maxDistance + 1;
  for (const candidate of known) {
    const isLonger = candidate.toLowerCase().startsWith(lowerCaseName);
    // Among equally close names, prefer one that starts with the given text.
    const limit = isLonger ? bestDistance + 1 : bestDistance;
    const distance = editDistance(lowerCaseName, candidate.toLowerCase(), limit);
    if (distance >= limit || distance > maxDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

/**
 * Edit distance between two strings, where a swap of neighbors is one edit. `limit` stands for any larger distance.
 */
function editDistance(first: string, second: string, limit: number): number {
  if (Math.abs(first.length - second.length) >= limit) return limit;
  let beforeLast: number[] = [];
  let last = Array.from({ length: second.length + 1 }, (_, index) => index);
  for (let row = 1; row <= first.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= second.length; column += 1) {
      const same = first[row - 1] === second[column - 1];
      const edits = [
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      ];
      if (first[row - 1] === second[column - 2] && first[row - 2] === second[column - 1])
        edits.push((beforeLast[column - 2] ?? Infinity) + 1);
      current.push(Math.min(...edits));
    }
    beforeLast = last;
    last = current;
  }
  return last[second.length] ?? limit;
}

/** Keywords that cannot name a column or table without quotes, because they start or join parts of a query. */
export const reservedWords: ReadonlySet<string> = new Set(
  `SELECT FROM WHERE PREWHERE GROUP HAVING QUALIFY ORDER LIMIT UNION INTERSECT EXCEPT JOIN ON USING AND OR NOT IN IS
  LIKE ILIKE BETWEEN CASE WHEN THEN ELSE AS BY WITH DISTINCT NULL TRUE FALSE INF INFINITY NAN`.split(/\s+/),
);

/** Reserved words that users often try as the name of a column or table. */
export const commonNameKeywords: ReadonlySet<string> = new Set(
  'FROM GROUP ORDER LIMIT UNION CASE DISTINCT USING BY WITH'.split(' '),
);

/** Keywords that cannot be an alias without AS, because they may start the next clause. */
export const keywordsRequiringAs: ReadonlySet<string> = new Set([
  ...reservedWords,
  ...`LEFT RIGHT FULL INNER CROSS OUTER ASOF ANY ALL SEMI ANTI ARRAY FINAL SAMPLE GLOBAL NATURAL PASTE POSITIONAL PIVOT
  UNPIVOT LATERAL WINDOW OFFSET FETCH SETTINGS FORMAT INTO FOR TABLESAMPLE COLLATE ASC DESC ASCENDING DESCENDING NULLS
  OVER FILTER WITHIN IGNORE RESPECT END EXCLUDE REPLACE ESCAPE VALUES MATERIALIZED`.split(/\s+/),
]);

/** Operators that are functions when a parenthesis follows: `and(a, b)`, `like(x, y)`. */
export const operatorFunctions: ReadonlySet<string> = new Set(['AND', 'OR', 'IN', 'LIKE', 'ILIKE']);

/** Keywords that the parser does not read as the first name of a field. The printer quotes them there. */
export const quotedAsFirstName: ReadonlySet<string> = new Set([
  ...reservedWords,
  ...'INTERVAL ARRAY BOTH LEADING TRAILING ALL'.split(' '),
]);

/** Keywords of SELECT, for suggestions. */
export const clauseKeywords: readonly string[] = [
  ...`SELECT FROM WHERE PREWHERE GROUP HAVING QUALIFY WINDOW ORDER LIMIT OFFSET UNION INTERSECT EXCEPT JOIN LEFT RIGHT
  FULL INNER CROSS ON USING ARRAY AND OR NOT IN LIKE ILIKE BETWEEN IS BY AS WITH DISTINCT`.split(/\s+/),
];

/** SQL statements other than SELECT. The error names the statement. */
export const nonSelectStatements: ReadonlySet<string> = new Set(
  `INSERT UPDATE DELETE MERGE REPLACE UPSERT TRUNCATE CREATE ALTER DROP RENAME ATTACH DETACH EXCHANGE OPTIMIZE GRANT
  REVOKE SET RESET USE SHOW DESCRIBE DESC EXPLAIN ANALYZE VACUUM COPY CALL DO EXEC EXECUTE PREPARE DEALLOCATE BEGIN
  START COMMIT ROLLBACK SAVEPOINT LOCK LISTEN NOTIFY KILL SYSTEM CHECK WATCH BACKUP RESTORE VALUES TABLE PRAGMA LOAD
  REFRESH CLUSTER REINDEX COMMENT DECLARE FETCH MOVE CLOSE DISCARD UNDROP LET RETURN FUN FN`.split(/\s+/),
);

/** Units of INTERVAL and EXTRACT, in the singular. */
export const timeUnits = [
  'microsecond',
  'millisecond',
  'second',
  'minute',
  'hour',
  'day',
  'week',
  'month',
  'quarter',
  'year',
] as const;

export type TimeUnit = (typeof timeUnits)[number];

/** The unit that a word names, singular or plural, case-insensitive. */
export function timeUnitOf(word: string): TimeUnit | undefined {
  const singular = word.toLowerCase().replace(/s$/, '');
  return timeUnits.find((unit) => unit === singular);
}

interface TokenSpan {
  /** Offset of the first code unit. */
  readonly start: number;
  /** Offset after the last code unit. */
  readonly end: number;
}

/** A token of a query text. A word is a name or a keyword; the grammar decides which. */
export type Token = TokenSpan &
  (
    | { readonly kind: 'word'; readonly text: string; readonly upper: string }
    | { readonly kind: 'quoted_name'; readonly text: string }
    | { readonly kind: 'string'; readonly text: string }
    | { readonly kind: 'number'; readonly text: string }
    /** Operators and brackets; the longest match wins. */
    | { readonly kind: 'symbol'; readonly text: string }
    /** `f'`, the text between expressions, and the closing quote of a template string. */
    | { readonly kind: 'template_start' | 'template_text' | 'template_end'; readonly text: string }
    /** A lexical error. It is thrown when the parser reaches it; no tokens follow. */
    | { readonly kind: 'invalid'; readonly text: string; readonly error: DialectError }
    | { readonly kind: 'end'; readonly text: string }
  );

export type TokenKind = Token['kind'];

/** Escape sequences. A backslash before any other character is literal, as regular expressions need it. */
const escapes: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  a: '\u0007',
  '0': '\0',
  '\\': '\\',
  "'": "'",
  '"': '"',
  '`': '`',
};

const quotedTokenNames: Readonly<Record<string, string>> = {
  "'": 'string',
  '"': 'double-quoted name',
  '`': 'backtick-quoted name',
};

/**
 * Reads a quoted token from the opening quote at `start`. A doubled or backslash-escaped quote is literal. An
 * unescaped `stop` character (the brace of a template string) also ends it. `end` is the offset after the character
 * that ended it.
 * @throws DialectError if the quote is not closed
 */
function readQuoted(
  queryText: QueryText,
  start: number,
  quote: string,
  stop?: string,
): { readonly value: string; readonly end: number } {
  const { text } = queryText;
  const parts: string[] = [];
  let from = start + 1;
  let at = from;
  while (at < text.length) {
    const character = text[at];
    if (character === quote || character === stop) {
      parts.push(text.slice(from, at));
      if (character === stop || text[at + 1] !== quote) return { value: parts.join(''), end: at + 1 };
      parts.push(quote);
      at += 2;
      from = at;
    } else if (character === '\\' && at + 1 < text.length) {
      const next = text[at + 1] ?? '';
      const unescaped = next === stop ? next : escapes[next];
      parts.push(text.slice(from, at), unescaped ?? `\\${next}`);
      at += 2;
      from = at;
    } else at += 1;
  }
  throw new DialectError(queryText, `This ${quotedTokenNames[quote] ?? 'string'} is not closed.`, {
    start,
    end: firstLineEnd(text, start),
    suggestion: `Close it with \`${quote === '`' ? '` `' : quote}\`.`,
  });
}

function firstLineEnd(text: string, start: number): number {
  const lineBreak = text.slice(start).search(/[\r\n]/);
  return lineBreak === -1 ? text.length : start + lineBreak;
}

/** Quotes a string so that {@link readQuoted} reads it back. */
export function quoteString(text: string, quote: string, stop?: string): string {
  return `${quote}${escapeQuoted(text, quote, stop)}${quote}`;
}

/** Escapes a string for use between quotes. */
export function escapeQuoted(text: string, quote: string, stop?: string): string {
  let escaped = '';
  for (const character of text) {
    if (character === '\\' || character === quote || character === stop) escaped += `\\${character}`;
    else if (character === '\n') escaped += '\\n';
    else if (character === '\r') escaped += '\\r';
    else if (character === '\t') escaped += '\\t';
    else if (character === '\0') escaped += '\\0';
    else escaped += character;
  }
  return escaped;
}

const whitespaceAndComments = /(?:[\s\u{feff}\u{200b}]|--[^\r\n]*|\/\/[^\r\n]*|\/\*[^]*?\*\/)+/uy;
const word = /[\p{ID_Start}_$][\p{ID_Continue}$]*/uy;
const hexadecimal = /0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*/y;
const decimal = /(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+(?:_\d+)*)?/y;
const digits = /\d+/y;
const symbol =
  /<=>|=~\*|!~\*|\?\.(?=[\p{ID_Start}_$`"[])|->|=~|!~|~\*|==|!=|<>|<=|>=|\|\||\?\?|::|:=|[()[\]{},.;:?+\-*/%=<>~]/uy;
/** Characters that users expect to work, with what to write instead. */
const unknownCharacterHints: Readonly<Record<string, string>> = {
  '#': 'Comments start with `--` or are enclosed in `/*` and `*/`.',
  '‘': 'Write strings in straight single quotes.',
  '’': 'Write strings in straight single quotes.',
  '“': 'Write names in straight double quotes and strings in straight single quotes.',
  '”': 'Write names in straight double quotes and strings in straight single quotes.',
  '@': "Write placeholders as {name}, and a property of that name as properties['@name'].",
  '&': 'Combine conditions with AND; use bitAnd() for bits.',
  '|': 'Combine conditions with OR and strings with ||; use bitOr() for bits.',
  '!': 'Use NOT to negate a condition.',
  '^': 'Use pow(x, y) for powers and bitXor(x, y) for bits.',
};

/** Open braces inside an expression of a template string. At 0, a closing brace ends the expression. */
type TemplateBraces = { open: number };

/** Splits a query text into tokens. The last token is `end`, or `invalid` at the first lexical error. */
export function tokenize(queryText: QueryText): readonly Token[] {
  return new Lexer(queryText).tokenize();
}

class Lexer {
  readonly #source: QueryText;
  readonly #text: string;
  readonly #tokens: Token[] = [];
  /** Template strings whose expressions are being read, innermost last. */
  readonly #templates: TemplateBraces[] = [];
  #position = 0;

  constructor(queryText: QueryText) {
    this.#source = queryText;
    this.#text = queryText.text;
  }

  tokenize(): readonly Token[] {
    try {
      for (;;) {
        this.#match(whitespaceAndComments);
        if (this.#position >= this.#text.length) break;
        this.#next();
      }
      this.#push('end', this.#position);
    } catch (error) {
      if (!(error instanceof DialectError)) throw error;
      this.#tokens.push({
        kind: 'invalid',
        text: '',
        error,
        start: error.offset,
        end: error.offset + error.length,
      });
    }
    return this.#tokens;
  }

  #next(): void {
    const start = this.#position;
    const first = this.#text[start] ?? '';
    if (first === "'" || first === '"' || first === '`') {
      this.#quoted(first);
      return;
    }
    if ((first === 'f' || first === 'F') && this.#text[start + 1] === "'") {
      this.#position += 2;
      this.#push('template_start', start);
      this.#templateText();
      return;
    }
    if (/[0-9]/.test(first) || (first === '.' && this.#startsNumber())) {
      this.#number();
      return;
    }
    if (this.#match(word)) {
      const text = this.#text.slice(start, this.#position);
      this.#tokens.push({ kind: 'word', text, upper: text.toUpperCase(), start, end: this.#position });
      return;
    }
    if (this.#text.startsWith('/*', start))
      throw this.#error('This comment is not closed.', start, start + 2, 'Close it with `*/`.');
    if (!this.#match(symbol)) throw this.#unknownCharacter(start);
    this.#push('symbol', start);
    this.#countBraces();
  }

  #quoted(quote: string): void {
    const start = this.#position;
    const { value, end } = readQuoted(this.#source, start, quote);
    this.#position = end;
    this.#tokens.push({ kind: quote === "'" ? 'string' : 'quoted_name', text: value, start, end });
  }

  /** A dot starts a number unless it directly follows a value: `t.1`, `f(x).1`. */
  #startsNumber(): boolean {
    if (!/[0-9]/.test(this.#text[this.#position + 1] ?? '')) return false;
    const previous = this.#tokens.at(-1);
    if (previous?.end !== this.#position) return true;
    return previous.kind === 'symbol' && ![')', ']', '}'].includes(previous.text);
  }

  #number(): void {
    const start = this.#position;
    const previous = this.#tokens.at(-1);
    const followsDot = previous?.kind === 'symbol' && (previous.text === '.' || previous.text === '?.');
    const matched = followsDot ? this.#match(digits) : this.#match(hexadecimal) || this.#match(decimal);
    const end = this.#position;
    if (!matched || this.#match(word)) {
      const found = this.#text.slice(start, this.#position);
      throw this.#error(
        `\`${found}\` is neither a number nor a name.`,
        start,
        Math.max(end, this.#position),
        'Write a name that starts with a digit in backticks.',
      );
    }
    this.#push('number', start);
  }

  /** Reads the text of a template string up to an expression or the closing quote. */
  #templateText(): void {
    const start = this.#position;
    const { value, end } = readQuoted(this.#source, start - 1, "'", '{');
    const closed = this.#text[end - 1] === "'";
    this.#tokens.push({ kind: 'template_text', text: value, start, end: end - 1 });
    this.#position = end;
    if (closed) {
      this.#push('template_end', end - 1);
      return;
    }
    this.#templates.push({ open: 0 });
    this.#push('symbol', end - 1);
  }

  #countBraces(): void {
    const template = this.#templates.at(-1);
    if (template === undefined) return;
    const { text } = this.#tokens.at(-1) ?? { text: '' };
    if (text === '{') template.open += 1;
    if (text !== '}') return;
    if (template.open > 0) {
      template.open -= 1;
      return;
    }
    this.#templates.pop();
    this.#templateText();
  }

  #match(pattern: RegExp): boolean {
    pattern.lastIndex = this.#position;
    if (!pattern.test(this.#text)) return false;
    this.#position = pattern.lastIndex;
    return true;
  }

  #push(kind: 'number' | 'symbol' | 'template_start' | 'template_end' | 'end', start: number): void {
    this.#tokens.push({ kind, text: this.#text.slice(start, this.#position), start, end: this.#position });
  }

  #unknownCharacter(start: number): DialectError {
    const character = String.fromCodePoint(this.#text.codePointAt(start) ?? 0);
    return this.#error(
      `The character \`${character}\` has no meaning here.`,
      start,
      start + character.length,
      unknownCharacterHints[character] ?? null,
    );
  }

  #error(summary: string, start: number, end: number, suggestion: string | null): DialectError {
    return new DialectError(this.#source, summary, { start, end, suggestion });
  }
}
