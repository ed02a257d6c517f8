import type { Expression, Node, Query, Span } from '../ast.ts';
import {
  DialectError,
  nearestName,
  QueryText,
  clauseKeywords,
  type Token,
  tokenize,
  type TokenKind,
} from '../query_text.ts';

/** Size limits that protect the parser and everything that recurses over the tree. */
export interface ParseLimits {
  /** Length of the text, in UTF-16 code units. */
  readonly length: number;
  /** Number of nodes in the tree. */
  readonly nodes: number;
  /** Height of the tree, and nesting depth of parentheses, queries and operators. */
  readonly depth: number;
  /** Number of SELECTs. PostgreSQL plans each over all partitions of its tables. */
  readonly selects: number;
  /** Number of values in the list of an IN. */
  readonly values: number;
}

/** ClickHouse has the same default limits for length and number of nodes. */
export const defaultLimits: ParseLimits = {
  length: 262_144,
  nodes: 50_000,
  depth: 250,
  selects: 100,
  values: 10_000,
};

/** The two rules that all others recurse into. They are injected, so that grammar files do not import in a circle. */
export interface Grammar {
  readonly expression: (cursor: Cursor) => Expression;
  readonly query: (cursor: Cursor) => Query;
}

/** Reads the tokens of one text, builds nodes and enforces the limits. */
export class Cursor {
  readonly grammar: Grammar;
  readonly queryText: QueryText;
  readonly #limits: ParseLimits;
  readonly #tokens: readonly Token[];
  /** Height of the subtree of each node. */
  readonly #heights = new WeakMap<object, number>();
  /** The last name accepted as an alias without AS, which is often a misspelled keyword. */
  #bareAlias: Token | undefined;
  #position = 0;
  #depth = 0;
  #nodes = 0;
  #selects = 0;

  /** @throws DialectError if the text is too long */
  constructor(text: string, grammar: Grammar, limits: ParseLimits) {
    this.grammar = grammar;
    this.queryText = new QueryText(text);
    this.#limits = limits;
    if (text.length > limits.length)
      throw new DialectError(this.queryText, `A query may have at most ${limits.length} characters.`, {
        start: limits.length,
        end: limits.length + 1,
      });
    this.#tokens = tokenize(this.queryText);
  }

  /** The next token. */
  get token(): Token {
    return this.peek(0);
  }

  /** The token `ahead` positions after the next one; the last token repeats. */
  peek(ahead: number): Token {
    const token = this.#tokens[Math.min(this.#position + ahead, this.#tokens.length - 1)];
    if (token === undefined) throw new Error('A text has at least one token.');
    if (ahead === 0 && token.kind === 'invalid') throw token.error;
    return token;
  }

  /** The end offset of the previous token. */
  get previousEnd(): number {
    return this.#tokens[this.#position - 1]?.end ?? 0;
  }

  advance(): Token {
    const { token } = this;
    if (token.kind !== 'end') this.#position += 1;
    return token;
  }

  /** Whether the next tokens are these unquoted keywords, in any case. */
  peekKeywords(...words: readonly string[]): boolean {
    return words.every((word, ahead) => keywordOf(this.peek(ahead)) === word);
  }

  /** Whether the token `ahead` is one of these symbols. */
  peekSymbol(symbols: string | readonly string[], ahead = 0): boolean {
    const token = this.peek(ahead);
    if (token.kind !== 'symbol') return false;
    return typeof symbols === 'string' ? token.text === symbols : symbols.includes(token.text);
  }

  peekKind(kind: TokenKind): boolean {
    return this.token.kind === kind;
  }

  /** Consumes these keywords if they come next. */
  acceptKeywords(...words: readonly string[]): boolean {
    if (!this.peekKeywords(...words)) return false;
    this.#position += words.length;
    return true;
  }

  acceptSymbol(symbol: string): boolean {
    if (!this.peekSymbol(symbol)) return false;
    this.#position += 1;
    return true;
  }

  expectKeywords(...words: readonly string[]): void {
    for (const word of words) if (!this.acceptKeywords(word)) throw this.unexpected(word, [word]);
  }

  expectSymbol(symbol: string, expected = `\`${symbol}\``): void {
    if (!this.acceptSymbol(symbol)) throw this.unexpected(expected);
  }

  /** `item, item, …`: at least one. A trailing comma is accepted if `ends` recognizes the end of the list. */
  list<Item>(item: () => Item, ends: () => boolean = () => false): readonly Item[] {
    const items = [item()];
    while (this.acceptSymbol(',')) {
      if (ends()) break;
      items.push(item());
    }
    return items;
  }

  /** How many parentheses can be in each other. */
  get maxDepth(): number {
    return this.#limits.depth;
  }

  /** `( … )` around a rule. */
  parenthesized<Inner>(inner: () => Inner): Inner {
    this.expectSymbol('(');
    const read = inner();
    this.expectSymbol(')');
    return read;
  }

  /** Runs a rule one nesting level deeper and enforces the depth limit. */
  nested<Result>(rule: () => Result): Result {
    this.#depth += 1;
    if (this.#depth > this.#limits.depth) throw this.#tooDeep(this.token);
    const result = rule();
    this.#depth -= 1;
    return result;
  }

  /** Counts a SELECT, which starts with the next token. */
  countSelect(): void {
    this.#selects += 1;
    if (this.#selects > this.#limits.selects)
      throw this.error(
        `A query may have at most ${this.#limits.selects} SELECTs.`,
        this.token,
        'Combine some of them with GROUP BY or countIf().',
      );
  }

  /** Counts the values of an IN. */
  checkValues(values: readonly Expression[]): void {
    const { values: limit } = this.#limits;
    const first = values[limit];
    if (first === undefined) return;
    throw this.error(
      `IN may have at most ${limit} values, not ${values.length}.`,
      first,
      'Select them from a table, or split the query.',
    );
  }

  /** Creates a node that spans from `start` to the previous token. */
  node<Made extends Node>(start: number, fields: NodeFields<Made>): Made {
    const span: Span = { start, end: Math.max(start, this.previousEnd) };
    this.#nodes += 1;
    if (this.#nodes > this.#limits.nodes)
      throw this.error(`A query may have at most ${this.#limits.nodes} syntax nodes.`, span);
    let height = 0;
    for (const field of Object.values(fields))
      if (Array.isArray(field)) for (const item of field) height = Math.max(height, this.#heightOf(item));
      else height = Math.max(height, this.#heightOf(field));
    if (height >= this.#limits.depth) throw this.#tooDeep({ ...span, start: Math.max(start, span.end - 1) });
    const node = { ...fields, ...span } as Made;
    this.#heights.set(node, height + 1);
    return node;
  }

  /** Records that the previous token was accepted as an alias. */
  recordBareAlias(): void {
    this.#bareAlias = this.#tokens[this.#position - 1];
  }

  error(summary: string, at: Span = this.token, suggestion: string | null = null): DialectError {
    return new DialectError(this.queryText, summary, { start: at.start, end: at.end, suggestion });
  }

  /** The error for an unexpected next token. `words` are the keywords that may have been misspelled. */
  unexpected(expected: string, words: readonly string[] = clauseKeywords): DialectError {
    const { token } = this;
    const alias = this.#bareAlias;
    if (alias !== undefined && alias === this.#tokens[this.#position - 1]) {
      const nearest = alias.kind === 'word' ? nearestName(alias.text, clauseKeywords) : null;
      if (nearest !== null)
        return this.error(`\`${alias.text}\` is not a keyword.`, alias, `Perhaps you meant ${nearest}?`);
    }
    const near = token.kind === 'word' && token.upper.length > 2 ? nearestName(token.text, words) : null;
    const suggestion = near === null || near === keywordOf(token) ? null : `Perhaps you meant ${near}?`;
    return this.error(`Expected ${expected}, found ${describeToken(token)}.`, token, suggestion);
  }

  #heightOf(value: unknown): number {
    return typeof value === 'object' && value !== null ? (this.#heights.get(value) ?? 0) : 0;
  }

  #tooDeep(at: Span): DialectError {
    return this.error(`This query is nested more than ${this.#limits.depth} levels deep.`, at);
  }
}

/** The fields of a node without its span. */
type NodeFields<Made extends Node> = Omit<Made, keyof Span>;

/** The keyword of a token in upper case; undefined for other tokens. */
export function keywordOf(token: Token): string | undefined {
  return token.kind === 'word' ? token.upper : undefined;
}

/** A token as it appears in error messages. */
function describeToken(token: Token): string {
  switch (token.kind) {
    case 'end':
    case 'invalid':
      return 'the end of the query';
    case 'string':
      return 'a string';
    case 'template_start':
    case 'template_text':
    case 'template_end':
      return 'a template string';
    case 'word':
    case 'number':
    case 'symbol':
    case 'quoted_name':
      return `\`${token.text.length > 40 ? `${token.text.slice(0, 40)}…` : token.text}\``;
  }
}
