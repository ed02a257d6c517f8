import { InvalidArgumentError } from 'commander';
import { restrictionLevels, type RestrictionLevel } from '../http/dashboards/access_levels.ts';

/** Parses a positive whole number. */
export function parseId(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a positive whole number.');
  return Number(text);
}

/** Parses positive whole numbers, separated by commas. */
export const parseIds = (text: string): number[] => text.split(',').map((id) => parseId(id.trim()));

/** Parses a whole number, at least 0. */
export const parseCount = (text: string): number => (text === '0' ? 0 : parseId(text));

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError('It must be JSON.');
  }
}

/** Parses a JSON object. */
export function parseJsonObject(text: string): Record<string, unknown> {
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new InvalidArgumentError('It must be a JSON object.');
  return value as Record<string, unknown>;
}

/** Parses a JSON array. */
export function parseJsonArray(text: string): unknown[] {
  const value = parseJson(text);
  if (!Array.isArray(value)) throw new InvalidArgumentError('It must be a JSON array.');
  return value;
}

/** Parses the restriction level of a dashboard: 21 or 37. */
export function parseRestrictionLevel(text: string): RestrictionLevel {
  const level = restrictionLevels.find((one) => String(one) === text);
  if (level === undefined)
    throw new InvalidArgumentError(`It must be one of: ${restrictionLevels.join(', ')}.`);
  return level;
}
