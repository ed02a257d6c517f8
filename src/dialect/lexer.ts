import { DialectError } from './dialect_error.ts';
import { readQuoted } from './quoting.ts';
import type { QueryText } from './query_text.ts';
import type { Token } from './tokens.ts';

const whitespaceAndComments = /(?:[\s\u{feff}\u{200b}]|--[^\r\n]*|\/\/[^\r\n]*|\/\*[^]*?\*\/)+/uy;
const word = /[\p{ID_Start}_$][\p{ID_Continue}$]*/uy;
const hexadecimal = /0[xX][0-9a-fA-F]+/y;
const decimal = /(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y;
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
