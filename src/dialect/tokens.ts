import type { DialectError } from './dialect_error.ts';

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
