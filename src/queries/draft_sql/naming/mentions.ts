import type { KnownProperty } from './vocabulary.ts';

/** What a word or some words of a prompt stand for. */
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
  /** In quotes, or a word that means nothing else. */
  | {
      readonly kind: 'text';
      readonly said: string;
      readonly quoted: boolean;
      /** Names of the project that have it as a part, where there are several. */
      readonly candidates: readonly string[];
    };

/** A property, whose it can be, and whether it is a number. */
export type PropertyReference = Pick<KnownProperty, 'key' | 'owners' | 'isNumber'>;

/** A word that belongs to the rules themselves, in lower case. */
export interface GrammarWord {
  readonly kind: 'grammar';
  readonly word: string;
}
