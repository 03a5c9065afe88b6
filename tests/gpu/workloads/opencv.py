"""OpenCV: functions on UMat, which run on the device. Their results are compared bit for bit."""

import os

os.environ["OPENCV_OPENCL_DEVICE"] = "::"  # any; by itself OpenCV takes no CPU

import cv2  # noqa: E402
import numpy  # noqa: E402

from readings import bits, fastest, figure, part, result  # noqa: E402
from settings import sized, times  # noqa: E402

SIDE = sized(2048, 256)
random = numpy.random.default_rng(7919)
gray = cv2.GaussianBlur(random.integers(0, 256, (SIDE, SIDE), dtype=numpy.uint8), (0, 0), 3)
gray = cv2.normalize(gray, None, 0, 255, cv2.NORM_MINMAX)
color = cv2.merge([gray, numpy.roll(gray, 31, 0), numpy.roll(gray, 17, 1)])
real = random.random((SIDE, SIDE), dtype=numpy.float32)
turn = cv2.getRotationMatrix2D((SIDE / 2, SIDE / 2), 30, 0.9)
view = numpy.array([[1, 0.1, 3], [0.05, 1, 7], [1e-5, 2e-5, 1]], dtype=numpy.float32)
grid_y, grid_x = numpy.mgrid[0:SIDE, 0:SIDE].astype(numpy.float32)
wave_x, wave_y = grid_x + 5 * numpy.sin(grid_y / 20, dtype=numpy.float32), grid_y
lut = random.permutation(256).astype(numpy.uint8)
kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 5))

G, C, R = cv2.UMat(gray), cv2.UMat(color), cv2.UMat(real)
WX, WY = cv2.UMat(wave_x), cv2.UMat(wave_y)
SHIFTED = cv2.UMat(numpy.roll(gray, 3, 1))

FUNCTIONS = {
    "add": lambda: cv2.add(G, SHIFTED),
    "absdiff": lambda: cv2.absdiff(G, SHIFTED),
    "multiply": lambda: cv2.multiply(R, R),
    "divide": lambda: cv2.divide(R, cv2.add(R, 1)),
    "addWeighted": lambda: cv2.addWeighted(C, 0.3, C, 0.6, 5),
    "compare": lambda: cv2.compare(G, SHIFTED, cv2.CMP_GT),
    "bitwise_xor": lambda: cv2.bitwise_xor(G, SHIFTED),
    "inRange": lambda: cv2.inRange(C, (20, 30, 40), (200, 190, 180)),
    "LUT": lambda: cv2.LUT(G, lut),
    "magnitude": lambda: cv2.magnitude(R, R),
    "exp": lambda: cv2.exp(R),
    "log": lambda: cv2.log(cv2.add(R, 1)),
    "sqrt": lambda: cv2.sqrt(R),
    "pow": lambda: cv2.pow(R, 2.5),
    "normalize": lambda: cv2.normalize(R, None, 0, 1, cv2.NORM_MINMAX),
    "convertScaleAbs": lambda: cv2.convertScaleAbs(R, None, 200, 3),
    "gemm": lambda: cv2.gemm(R, R, 1, None, 0),
    "transpose": lambda: cv2.transpose(R),
    "flip": lambda: cv2.flip(C, -1),
    "copyMakeBorder": lambda: cv2.copyMakeBorder(C, 7, 9, 11, 13, cv2.BORDER_REFLECT),
    "merge": lambda: cv2.merge(cv2.split(C)),
    "dft": lambda: cv2.dft(R, None, cv2.DFT_COMPLEX_OUTPUT),
    "sum": lambda: numpy.array(cv2.sumElems(G)),
    "norm": lambda: numpy.array(cv2.norm(G, SHIFTED, cv2.NORM_L1)),
    "meanStdDev": lambda: cv2.meanStdDev(G),
    "minMaxLoc": lambda: numpy.array([*cv2.minMaxLoc(R)[:2]]),
    "countNonZero": lambda: numpy.array(cv2.countNonZero(G)),
    "reduce": lambda: cv2.reduce(G, 0, cv2.REDUCE_SUM, None, cv2.CV_32S),
    "cvtColor to gray": lambda: cv2.cvtColor(C, cv2.COLOR_BGR2GRAY),
    "cvtColor to HSV": lambda: cv2.cvtColor(C, cv2.COLOR_BGR2HSV),
    "cvtColor to Lab": lambda: cv2.cvtColor(C, cv2.COLOR_BGR2Lab),
    "threshold": lambda: cv2.threshold(G, 120, 255, cv2.THRESH_BINARY)[1],
    "adaptiveThreshold": lambda: cv2.adaptiveThreshold(G, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY, 11, 2),
    "equalizeHist": lambda: cv2.equalizeHist(G),
    "calcHist": lambda: cv2.calcHist([G], [0], None, [256], [0, 256]),
    "CLAHE": lambda: cv2.createCLAHE(2.0, (8, 8)).apply(G),
    "blur": lambda: cv2.blur(C, (5, 5)),
    "GaussianBlur": lambda: cv2.GaussianBlur(C, (5, 5), 1.5),
    "medianBlur": lambda: cv2.medianBlur(G, 5),
    "bilateralFilter": lambda: cv2.bilateralFilter(G, 7, 40, 40),
    "filter2D": lambda: cv2.filter2D(R, -1, numpy.outer([1, 2, 1], [1, 0, -1]).astype(numpy.float32)),
    "sepFilter2D": lambda: cv2.sepFilter2D(R, -1, numpy.float32([1, 2, 1]), numpy.float32([1, 0, -1])),
    "Sobel": lambda: cv2.Sobel(G, cv2.CV_16S, 1, 0),
    "Laplacian": lambda: cv2.Laplacian(G, cv2.CV_16S),
    "Canny": lambda: cv2.Canny(G, 50, 120),
    "cornerHarris": lambda: cv2.cornerHarris(G, 3, 3, 0.04),
    "erode": lambda: cv2.erode(G, kernel),
    "morphologyEx": lambda: cv2.morphologyEx(G, cv2.MORPH_GRADIENT, kernel),
    "resize": lambda: cv2.resize(C, (SIDE * 3 // 4, SIDE * 2 // 3), interpolation=cv2.INTER_LINEAR),
    "resize by area": lambda: cv2.resize(C, (SIDE // 3, SIDE // 5), interpolation=cv2.INTER_AREA),
    "pyrDown": lambda: cv2.pyrDown(G),
    "pyrUp": lambda: cv2.pyrUp(G),
    "warpAffine": lambda: cv2.warpAffine(C, turn, (SIDE, SIDE)),
    "warpPerspective": lambda: cv2.warpPerspective(C, view, (SIDE, SIDE)),
    "remap": lambda: cv2.remap(C, WX, WY, cv2.INTER_LINEAR),
    "integral": lambda: cv2.integral(G),
    "matchTemplate": lambda: cv2.matchTemplate(G, cv2.UMat(gray[40:72, 50:82]), cv2.TM_CCORR_NORMED),
    "calcOpticalFlowFarneback": lambda: cv2.calcOpticalFlowFarneback(G, SHIFTED, None, 0.5, 3, 15, 3, 5, 1.1, 0),
}

# Work-items of its second kernel race: it says something else now and then, natively too.
RACES = ("Canny",)

# One of each kind is timed; the others are checked.
TIMED = ("addWeighted", "gemm", "dft", "meanStdDev", "cvtColor to Lab", "medianBlur", "GaussianBlur", "Canny",
         "resize", "warpPerspective", "matchTemplate", "calcOpticalFlowFarneback")


def array(value):
    """The array behind a UMat, or behind several."""
    if isinstance(value, tuple):
        return numpy.concatenate([numpy.ravel(array(v)) for v in value])
    return value.get() if isinstance(value, cv2.UMat) else value


cv2.ocl.setUseOpenCL(True)
if not cv2.ocl.useOpenCL():
    raise SystemExit("OpenCV found no OpenCL device")
device = cv2.ocl.Device.getDefault()
print(device.name(), device.driverVersion())
for name, function in FUNCTIONS.items():
    with part(name):
        value = numpy.ascontiguousarray(array(function()))
        mean = float(numpy.nanmean(value.astype(numpy.float64)))
        if name in RACES:
            result(f"{name}, mean", mean, tolerance=1e-3, exact=False)
        else:
            bits(name, value)
            result(f"{name}, mean", mean)
        if name in TIMED:
            figure(name, 1e3 * fastest(lambda: array(function()), times(20, 3)), "ms", smaller=True)
