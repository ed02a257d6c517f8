import type { DialectError } from './dialect_error.ts';

interface TokenSpan {
  /** Offset of the first code unit. */
  readonly start: number;
  /** Offset behind the last one. */
  readonly end: number;
}

/** A piece of a query text. Words are names and keywords alike: which they are, the grammar tells by their place. */
export type Token = TokenSpan &
  (
    | { readonly kind: 'word'; readonly text: string; readonly upper: string }
    | { readonly kind: 'quoted_name'; readonly text: string }
    | { readonly kind: 'string'; readonly text: string }
    | { readonly kind: 'number'; readonly text: string }
    /** Operators and brackets, the longest that fits. */
    | { readonly kind: 'symbol'; readonly text: string }
    /** `f'`, a text between expressions, and the closing quote of a template string. */
    | { readonly kind: 'template_start' | 'template_text' | 'template_end'; readonly text: string }
    /** Text that is no token: the fault is told when the parser gets here, and nothing follows. */
    | { readonly kind: 'invalid'; readonly text: string; readonly error: DialectError }
    | { readonly kind: 'end'; readonly text: string }
  );

export type TokenKind = Token['kind'];
