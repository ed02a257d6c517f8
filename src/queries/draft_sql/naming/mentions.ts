import type { KnownProperty } from './vocabulary.ts';

/** The meaning of one or more words of a prompt. */
export type Mention =
  | { readonly kind: 'event'; readonly said: string; readonly name: string }
  | { readonly kind: 'property'; readonly said: string; readonly property: PropertyReference }
  | {
      readonly kind: 'value';
      readonly said: string;
      readonly text: string;
      readonly property: PropertyReference;
    }
  | { readonly kind: 'number'; readonly said: string }
  | { readonly kind: 'date'; readonly said: string }
  /** A quoted string, or a word without another meaning. */
  | {
      readonly kind: 'text';
      readonly said: string;
      readonly quoted: boolean;
      /** Names of the project that contain it, if there are several. */
      readonly candidates: readonly string[];
    };

/** A property, its possible owners, and whether it is numeric. */
export type PropertyReference = Pick<KnownProperty, 'key' | 'owners' | 'isNumber'>;

/** A word of the rules, in lower case. */
export interface GrammarWord {
  readonly kind: 'grammar';
  readonly word: string;
}
