import { keysOf } from './words.ts';

/** Events that analytics libraries send automatically, by their common names. */
const eventNames: Readonly<Record<string, string>> = {
  'page view': '$pageview',
  view: '$pageview',
  visit: '$pageview',
  'page visit': '$pageview',
  'page hit': '$pageview',
  click: '$autocapture',
  'page leave': '$pageleave',
  screen: '$screen',
  'screen view': '$screen',
  exception: '$exception',
  error: '$exception',
};

/** Properties by their common names; the first one that the project has is used. */
const propertyKeys: Readonly<Record<string, readonly string[]>> = {
  country: ['country', '$geoip_country_name', '$geoip_country_code'],
  city: ['city', '$geoip_city_name'],
  region: ['region', '$geoip_subdivision_1_name'],
  continent: ['continent', '$geoip_continent_name'],
  url: ['url', '$current_url'],
  page: ['page', '$pathname', '$current_url'],
  path: ['path', '$pathname'],
  pathname: ['$pathname'],
  host: ['host', '$host'],
  browser: ['browser', '$browser'],
  'browser version': ['$browser_version'],
  os: ['os', '$os'],
  'operating system': ['$os'],
  device: ['device', '$device_type', '$device'],
  'device type': ['$device_type'],
  language: ['language', '$browser_language', '$language'],
  referrer: ['referrer', '$referring_domain', '$referrer'],
  'referring domain': ['$referring_domain'],
  source: ['source', 'utm_source', '$utm_source'],
  campaign: ['campaign', 'utm_campaign', '$utm_campaign'],
  medium: ['medium', 'utm_medium', '$utm_medium'],
  'e-mail': ['email', '$email'],
  email: ['email', '$email'],
  revenue: ['revenue', '$revenue', 'amount', 'price'],
  sales: ['sales', 'revenue', '$revenue', 'amount', 'price'],
  turnover: ['turnover', 'revenue', '$revenue', 'amount', 'price'],
};

const byStems = <Meaning>(names: Readonly<Record<string, Meaning>>): ReadonlyMap<string, Meaning> =>
  new Map(
    Object.entries(names).flatMap(([name, meaning]) => keysOf(name).map((key) => [key, meaning] as const)),
  );

/** Events by the keys of their common names. */
export const eventAliases = byStems(eventNames);
/** Properties by the keys of their common names. */
export const propertyAliases = byStems(propertyKeys);
