#include "pose.h"

#include <math.h>

enum { POINT_SIDE = 24 };

int view_focal(const struct view *v)
{
        return v->height * 5 / 4;
}

int view_marker(const struct view *v)
{
        return v->voxels * 3 / 4;
}

static void cross(const double a[3], const double b[3], double ret[3])
{
        for (int i = 0; i < 3; i++)
                ret[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
}

static double dot(const double a[3], const double b[3])
{
        return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void normalise(double a[3])
{
        double length = sqrt(dot(a, a));
        for (int i = 0; i < 3; i++)
                a[i] /= length;
}

/* `rows`: the rotation. */
static struct pose round_pose(const struct view *v, const double rows[3][3],
                              const double translation[3])
{
        struct pose p = { .words = { [POSE_FOCAL] = view_focal(v),
                                     [POSE_WIDTH] = v->width,
                                     [POSE_HEIGHT] = v->height,
                                     [POSE_POINT] = POINT_SIDE } };
        for (int i = 0; i < 3; i++) {
                for (int k = 0; k < 3; k++)
                        p.words[3 * i + k] = (int32_t)lround(rows[i][k] * 16384);
                p.words[POSE_TRANSLATION + i] = (int32_t)lround(translation[i] * 16);
        }
        return p;
}

struct pose pose_on_path(const struct view *v, size_t frame)
{
        double side = v->voxels, angle = 0.35 * sin((double)frame * 0.1047) + 0.3;
        double height = 0.55 + 0.03 * sin((double)frame * 0.2094), distance = 2.4 * side;
        double eye[3] = { 0.5 * side + distance * cos(height) * sin(angle), distance * sin(height),
                          0.5 * side + distance * cos(height) * cos(angle) };
        double target[3] = { 0.5 * side, 0.38 * side, 0.5 * side };
        double rows[3][3], translation[3];
        for (int i = 0; i < 3; i++)
                rows[2][i] = target[i] - eye[i];
        normalise(rows[2]);
        cross(rows[2], (double[3]){ 0, 1, 0 }, rows[0]);
        normalise(rows[0]);
        cross(rows[2], rows[0], rows[1]);
        for (int i = 0; i < 3; i++)
                translation[i] = -dot(rows[i], eye);
        return round_pose(v, (const double(*)[3])rows, translation);
}

/* Solve by Gaussian elimination with pivots. False: the matrix is singular. */
static bool solve(double a[8][9])
{
        for (int c = 0; c < 8; c++) {
                int best = c;
                for (int r = c + 1; r < 8; r++)
                        if (fabs(a[r][c]) > fabs(a[best][c]))
                                best = r;
                if (fabs(a[best][c]) < 1e-9)
                        return false;
                for (int k = 0; k < 9; k++) {
                        double t = a[c][k];
                        a[c][k] = a[best][k];
                        a[best][k] = t;
                }
                for (int r = 0; r < 8; r++) {
                        double factor = r == c ? 0 : a[r][c] / a[c][c];
                        for (int k = c; factor != 0 && k < 9; k++)
                                a[r][k] -= factor * a[c][k];
                }
        }
        for (int r = 0; r < 8; r++)
                a[r][8] /= a[r][r];
        return true;
}

bool pose_from_corners(const struct view *v, const double corners[4][2], struct pose *ret)
{
        /* Solve for the homography from the marker's plane, where its side is 1, to the plane at distance 1 before the
         * camera. */
        static const double plane[4][2] = {
                { -0.5, -0.5 }, { 0.5, -0.5 }, { 0.5, 0.5 }, { -0.5, 0.5 }
        };
        double a[8][9] = { 0 };
        for (int i = 0; i < 4; i++) {
                for (int k = 0; k < 2; k++) {
                        double *row = a[2 * i + k], to = corners[i][k] / view_focal(v);
                        for (int c = 0; c < 2; c++) {
                                row[3 * k + c] = plane[i][c];
                                row[6 + c] = -to * plane[i][c];
                        }
                        row[3 * k + 2] = 1;
                        row[8] = to;
                }
        }
        if (!solve(a))
                return false;
        /* Columns of the rotation, for the axes x and z of the marker, and the marker's place. */
        double x[3] = { a[0][8], a[3][8], a[6][8] }, z[3] = { a[1][8], a[4][8], a[7][8] };
        double place[3] = { a[2][8], a[5][8], 1 };
        double scale = sqrt(sqrt(dot(x, x) * dot(z, z)));
        if (!(scale > 1e-6))
                return false;
        normalise(x);
        normalise(z);
        double sum[3], difference[3], y[3], rows[3][3], translation[3];
        for (int i = 0; i < 3; i++) {
                sum[i] = x[i] + z[i];
                difference[i] = x[i] - z[i];
        }
        if (!(dot(sum, sum) > 1e-6) || !(dot(difference, difference) > 1e-6))
                return false;
        normalise(sum);
        normalise(difference);
        for (int i = 0; i < 3; i++) {
                x[i] = (sum[i] + difference[i]) / sqrt(2);
                z[i] = (sum[i] - difference[i]) / sqrt(2);
        }
        cross(z, x, y);
        for (int i = 0; i < 3; i++) {
                rows[i][0] = x[i];
                rows[i][1] = y[i];
                rows[i][2] = z[i];
                translation[i] =
                        place[i] / scale * view_marker(v) - (x[i] + z[i]) * (v->voxels / 2);
                if (!(fabs(translation[i]) < 60000))
                        return false;
        }
        *ret = round_pose(v, (const double(*)[3])rows, translation);
        return true;
}

double pose_distance(const struct view *v, const struct pose *a, const struct pose *b)
{
        double worst = 0;
        for (int corner = 0; corner < 8; corner++) {
                double at[2][2];
                const struct pose *both[2] = { a, b };
                for (int p = 0; p < 2; p++) {
                        const int32_t *w = both[p]->words;
                        double c[3];
                        for (int i = 0; i < 3; i++) {
                                c[i] = w[POSE_TRANSLATION + i] / 16.0;
                                for (int k = 0; k < 3; k++)
                                        c[i] += w[3 * i + k] / 16384.0 *
                                                (corner >> k & 1 ? v->voxels : 0);
                        }
                        at[p][0] = view_focal(v) * c[0] / c[2];
                        at[p][1] = view_focal(v) * c[1] / c[2];
                }
                worst = fmax(worst, hypot(at[0][0] - at[1][0], at[0][1] - at[1][1]));
        }
        return worst;
}
